"""The objects that virtual chunks of these repositories lie in."""

import datetime
import hashlib

N = 40  # chunks, one in each object
PREFIX = "s3://bucket/data/"
CHANGED = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)  # none is changed later, says their manifest


def key(i):
    return f"data/weather/model-level/part-{i:04}.bin"


def url(i):
    return f"s3://bucket/{key(i)}"


def data(i):
    return bytes((i * 7 + k * 13) % 251 for k in range(64 + i))


def offset(i):
    return i % 5


def chunk(i):
    return data(i)[offset(i) : offset(i) + 16]


def etag(i):
    return f'"{hashlib.md5(data(i)).hexdigest()}"'
