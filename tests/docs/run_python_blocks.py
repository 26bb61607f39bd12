"""Runs the ```python blocks of a page in order, as one program: run_python_blocks.py PAGE MODULE

Exit status 77 where Python has no MODULE. The variable MPC_PYTHON names another interpreter.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

page, module = pathlib.Path(sys.argv[1]), sys.argv[2]
python = os.environ.get("MPC_PYTHON") or sys.executable
blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
if not blocks:
    sys.exit(f"{page.name} has no block of Python")
for index, block in enumerate(blocks):
    compile(block, f"{page.name}, block {index + 1}", "exec")
if subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
    print(f"skipped: {python} has no {module}; MPC_PYTHON names another interpreter")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    sys.exit(subprocess.run([python, "-c", "\n".join(blocks)], cwd=folder, check=False).returncode)
