"""Start VoxCPM Studio: `python scripts/run.py [arguments of app.py]`.

Makes a virtual environment beside the project if there is none, installs what is missing, and starts the
app. Only the standard library is used, and this file parses on old Pythons so that it can say so.
"""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "VoxCPM Studio needs Python 3.10 or newer, and this is Python %d.%d. "
        "Install a newer Python from python.org and run this script with it." % sys.version_info[:2]
    )

import workshop

if __name__ == "__main__":
    try:
        sys.exit(workshop.run_app(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again to go on.")
