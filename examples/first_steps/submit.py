from tasks import send_welcome

from dtq import Client

with Client() as dtq:
    handle = dtq.submit(send_welcome, 42)
    print(handle.id, handle.status())
    print(handle.result(timeout=10))
