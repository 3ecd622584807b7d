#!/usr/bin/env python3
"""Packs a folder as a Python wheel; tools/package calls it, with all it needs in the environment."""

import base64
import hashlib
import os
import pathlib
import zipfile

version, tag = os.environ["VERSION"], os.environ["TAG"]
info = f"rehearse-{version}.dist-info"
files = {}
tree = pathlib.Path(os.environ["TREE"])
for path in sorted(tree.rglob("*")):
    if path.is_file():
        files[path.relative_to(tree).as_posix()] = path.read_bytes()
files[f"{info}/licenses/LICENSE"] = pathlib.Path(os.environ["LICENSE"]).read_bytes()
for path in sorted(pathlib.Path(os.environ["LICENCES"]).iterdir()):
    files[f"{info}/licenses/{path.name}"] = path.read_bytes()
readme = pathlib.Path(os.environ["README"]).read_text()
files[f"{info}/METADATA"] = (
    f"Metadata-Version: 2.1\nName: rehearse\nVersion: {version}\n"
    "Summary: Rehearse a training run on a cluster that you do not have yet\n"
    "Requires-Dist: numpy\nDescription-Content-Type: text/markdown\n\n" + readme).encode()
files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: rehearse\nRoot-Is-Purelib: false\n"
                          f"Tag: {tag}\n").encode()

record = ""
for name, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(content)}\n"
files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

out = pathlib.Path(os.environ["OUT"]) / f"rehearse-{version}-{tag}.whl"
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # so that the bytes are always the same
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
        wheel.writestr(entry, content)
