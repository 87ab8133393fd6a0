"""Compares a wheel with what became of it: names, order, and bytes of all that did not change; RECORD with all that is there."""

import base64
import csv
import hashlib
import io
import sys
import zipfile

changed = set(sys.argv[3:])
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2]) as new:
    assert old.namelist() == new.namelist()
    (record,) = [name for name in new.namelist() if name.endswith(".dist-info/RECORD")]
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(new.read(record).decode()))}
    for before, after in zip(old.infolist(), new.infolist()):
        for key in "date_time compress_type comment create_system external_attr internal_attr".split():
            assert getattr(before, key) == getattr(after, key), (before, key)
        if before.filename not in changed and before.filename != record:
            assert (before.CRC, before.file_size) == (after.CRC, after.file_size), before
        if after.is_dir() or after.filename == record:
            continue
        digest = hashlib.sha256()
        with new.open(after) as file:
            while piece := file.read(1 << 22):
                digest.update(piece)
        if after.filename in rows and rows[after.filename][0]:
            value, size = rows[after.filename]
            assert value == "sha256=" + base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode(), after
            assert int(size) == after.file_size, after
        else:
            assert after.filename not in changed, after
