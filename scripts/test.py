"""Check the project: `python scripts/test.py [--fast] [-- arguments of pytest]`.

Installs what the checks need (a browser included), then runs ruff and pytest. The last line is a summary.
"""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "VoxCPM Studio needs Python 3.10 or newer, and this is Python %d.%d. "
        "Install a newer Python from python.org and run this script with it." % sys.version_info[:2]
    )

import checks

if __name__ == "__main__":
    try:
        sys.exit(checks.main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again to go on.")
