"""On the PATH of the tests `python3` is the Python below theirs, and no script that looks for one.

Such a script (pyenv's) takes longer than the gates of most tests.
"""

import os
import sysconfig

os.environ["PATH"] = f"{sysconfig.get_config_var('BINDIR')}{os.pathsep}{os.environ['PATH']}"
