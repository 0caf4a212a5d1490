"""The log: messages in Redis Streams, and the only code that speaks Redis. It knows nothing of Django.

Operations are generators that yield commands and return a result (``append.append``, ``read.read`` …), so that
the same code serves blocking and asynchronous callers: ``Log(url).run(op)`` or ``await AsyncLog(url).run(op)``.
"""
