"""`python -m hoist`: the command line. `python -m hoist --help` says what it can do."""

from __future__ import annotations

import os
import sys
from typing import List, Optional

from . import _hoist


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs a command: `arguments` are its words, by default those of this process. Gives the exit status."""
    sys.stdout.flush()
    sys.stderr.flush()
    words = sys.argv[1:] if arguments is None else arguments
    return _hoist.main([os.fsencode(word) if isinstance(word, bytes) else word for word in ["hoist", *words]])


if __name__ == "__main__":
    sys.exit(main())
