"""How much memory this process holds, as Linux counts it. Pages of files that it maps, such as libraries, are left out:
they come in as code runs for the first time."""

import ctypes


def _status(field):
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field + ":"):
                return 1024 * int(line.split()[1])
    return 0


def resident_bytes():
    return _status("RssAnon")


def peak_bytes():
    """The most since the process began or since forget_peak. The peak that Linux keeps has mapped files in it; they
    hardly ever leave, so what is there of them now was there then."""
    return _status("VmHWM") - _status("RssFile")


def forget_peak():
    """What was freed goes back to the system, and the peak is what is held now. False where Linux refuses."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except (OSError, AttributeError):
        return False
    return True
