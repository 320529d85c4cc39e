"""What operators do to a deployment: each act over all partitions, in bounded calls, audited."""
