"""Ends what this process started if it is killed itself."""

import atexit
import os
import subprocess
from contextlib import suppress

# $1 is the name of the marker. First TERM and a second of grace, in which an agent's CLI ends what
# it started; signal 0 only checks what is left. We may die before we have sent a leader, or before
# it has its environment: hence the groups of all marked processes, and always a second look. The
# files that "=" names are made when nothing is left that could still write; zombies cannot, and in
# a container they may stay. Unlike ":", "true" does not end the shell if it cannot make a file.
_SCRIPT = """
name=$1
shift
groups=
while read -r change leader; do
  case $change in
  =) set -- "$@" "$leader" ;;
  +) groups="$groups -$leader" ;;
  -) rest=
     for group in $groups; do [ "$group" = "-$leader" ] || rest="$rest $group"; done
     groups=$rest ;;
  esac
done
for signal in TERM 0 0 0 0 0 0 0 0 0 KILL KILL KILL KILL; do
  marked=
  for file in $(grep -lsz "^$name=" /proc/[0-9]*/environ); do
    file=${file#/proc/}
    marked="$marked ${file%/environ}"
  done
  if [ $signal = TERM ]; then
    for leader in $marked; do groups="$groups -$leader"; done
  fi
  leaders=none
  for target in $groups $marked; do
    kill -s $signal -- $target && leaders="$leaders|${target#-}"
  done
  left=$marked
  [ -e /proc/self ] || left=${leaders#none}
  grep -qsE "\\) [^ZX] [0-9]+ ($leaders) " /proc/[0-9]*/stat && left=yes
  if [ ! "$left" ] && [ $signal != TERM ]; then
    for file; do true > "$file"; done
    exit 0
  fi
  sleep 0.1
done
"""


class Watchdog:
    """A small shell that ends our commands, by group and marker, if this process is killed.

    It reads a pipe whose other end closes when this process dies.
    """

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
        except OSError:  # no shell or no resources: commands are still ended at a normal end
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

    def note_end(self, file: str) -> None:
        """If we die, make this file once everything that we started has ended."""
        if "\n" not in file:
            self._tell(f"= {file}\n")

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # the watchdog may have been killed
            os.write(self._pipe, line.encode())

    def dismiss(self) -> None:
        """End the watchdog without any effect."""
        if self._shell:
            self._shell.kill()
            self._shell.wait()
            os.close(self._pipe)
            self._pipe, self._shell = -1, None
