-- @include keys
-- A full server refuses what may need memory only as the first write of a script. This one needs none and changes
-- nothing; so a script that ends tasks, or keeps workers alive, is served all the same, and only new tasks are refused.
redis.call('DEL', P .. ':none')
