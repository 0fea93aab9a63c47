"""A tiny shell that ends our commands if we are killed outright. While we live it only listens.

It holds the reading end of a pipe whose other end closes with us, whatever we die of.
"""

import atexit
import os
import subprocess
from contextlib import suppress

# $1 is the name of the marker. TERM and a second of grace first: an agent's CLI then ends what it
# started itself; 0 only asks who is left. We may die before we have told of a leader, or before one
# has its environment: hence the groups of whoever is marked, and a second look in any case.
_SCRIPT = """
groups=
while read -r change leader; do
  case $change in
  +) groups="$groups -$leader" ;;
  -) rest=
     for group in $groups; do [ "$group" = "-$leader" ] || rest="$rest $group"; done
     groups=$rest ;;
  esac
done
for signal in TERM 0 0 0 0 0 0 0 0 0 KILL KILL KILL KILL; do
  marked=
  for file in $(grep -lsz "^$1=" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    marked="$marked ${file%/environ}"
  done
  if [ $signal = TERM ]; then
    for leader in $marked; do groups="$groups -$leader"; done
  fi
  left=
  for target in $groups $marked; do
    kill -s $signal -- $target && left=yes
  done
  [ "$left" ] || [ $signal = TERM ] || exit 0
  sleep 0.1
done
"""


class Watchdog:
    """Knows the groups of our commands, and finds by the marker what has left them."""

    def __init__(self, mark: str) -> None:
        self._pipe = -1
        self._shell: subprocess.Popen[bytes] | None = None
        reading, writing = os.pipe()
        try:
            self._shell = subprocess.Popen(
                ("/bin/sh", "-c", _SCRIPT, "atlas-watchdog", mark),
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                start_new_session=True,
            )
        except OSError:  # no shell or no room for one: what we start ourselves, we still end
            os.close(writing)
        else:
            self._pipe = writing
            atexit.register(self.dismiss)
        finally:
            os.close(reading)

    @property
    def pid(self) -> int | None:
        return self._shell.pid if self._shell else None

    def guard(self, leader: int) -> None:
        """End this group if we die."""
        self._tell(f"+ {leader}\n")

    def forget(self, leader: int) -> None:
        self._tell(f"- {leader}\n")

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # it may have been killed, and we need not be
            os.write(self._pipe, line.encode())

    def dismiss(self) -> None:
        """Let it vanish without doing anything."""
        if self._shell:
            self._shell.kill()
            self._shell.wait()
            os.close(self._pipe)
            self._pipe, self._shell = -1, None
