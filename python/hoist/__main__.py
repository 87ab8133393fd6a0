"""`python -m hoist`: the command line. `python -m hoist --help` says what it can do."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import List, Optional

from . import _hoist


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs a command: `arguments` are its words, by default those of this process. Gives the exit status."""
    sys.stdout.flush()
    sys.stderr.flush()
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None and threading.current_thread() is threading.main_thread():
        # Python's handler only notes the interrupt, for when the command is over
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _hoist.main([os.fsencode(word) if isinstance(word, bytes) else word for word in ["hoist", *words]])


if __name__ == "__main__":
    sys.exit(main())
