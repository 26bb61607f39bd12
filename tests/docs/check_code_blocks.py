"""python3 check_code_blocks.py <page.md> <program.cc>...: every ```cpp block of the page is part of a program.

Indentation does not count: a page may show the inside of a function.
"""
import pathlib
import re
import sys


def lines(text):
    return "\n".join(line.strip() for line in text.splitlines())


page = pathlib.Path(sys.argv[1])
programs = [lines(pathlib.Path(argument).read_text()) for argument in sys.argv[2:]]
blocks = re.findall(r"^```cpp\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
strangers = [block for block in blocks if not any(lines(block) in program for program in programs)]
if strangers or not blocks:
    names = ", ".join(pathlib.Path(argument).name for argument in sys.argv[2:])
    sys.exit(f"{page.name}: {len(strangers)} of {len(blocks)} code blocks are not in {names}:\n\n" + "\n".join(strangers))
print(f"{page.name}: {len(blocks)} code blocks are parts of tested programs")
