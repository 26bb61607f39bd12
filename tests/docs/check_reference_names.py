"""check_reference_names.py TABLE mindspore|torch: the names that the table gives for the framework exist there.

Exit status 77 where Python has no such module. The variable MPC_PYTHON names another interpreter.
"""
import json
import os
import pathlib
import subprocess
import sys

COLUMNS = {"mindspore": ("mindspore", ["mindspore"]), "torch": ("pytorch", ["torch", "torchvision"])}
# Looks names up from the left: a part is an attribute, or a module that is imported.
LOOK_UP = """
import importlib, json, sys

def exists(name):
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], 1):
        try:
            found = getattr(found, part) if hasattr(found, part) else importlib.import_module(".".join(parts[:index + 1]))
        except ImportError:
            return False
    return True

unknown = [name for name in json.load(sys.stdin) if not exists(name)]
sys.exit("there is no " + ", ".join(unknown) if unknown else 0)
"""

table, framework = pathlib.Path(sys.argv[1]), sys.argv[2]
column, modules = COLUMNS[framework]
python = os.environ.get("MPC_PYTHON") or sys.executable
for module in modules:
    if subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
        print(f"skipped: {python} has no {module}; MPC_PYTHON names another interpreter")
        sys.exit(77)
names = sorted({row[column] for row in json.loads(table.read_text()) if row.get(column)})
found = subprocess.run([python, "-c", LOOK_UP], input=json.dumps(names), text=True, check=False)
print(f"{table.name}: {len(names)} names of {framework} were looked up")
sys.exit(found.returncode)
