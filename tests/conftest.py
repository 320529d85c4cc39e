"""For all tests: a Ctrl-C can be sent, however the tests themselves were started.

A shell starts what runs in the background with SIGINT ignored, and that is inherited.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
