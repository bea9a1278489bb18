"""`python -m jobs.cli`: the command `rebalance` where it is not installed."""

import sys

from jobs.cli import main

sys.exit(main())
