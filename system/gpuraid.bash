# gpuraid: completion for bash.
#
# What there is comes from "gpuraid --help" and "gpuraid COMMAND --help".
#
# SPDX-License-Identifier: BSD-3-Clause

# The names of running arrays.
_gpuraid_running ()
{
  local dir=/run/gpuraid f

  if [ "$EUID" -ne 0 ]; then
    dir=$XDG_RUNTIME_DIR/gpuraid
  fi
  for f in "${GPURAID_RUNDIR:-$dir}"/*.control; do
    [ ! -e "$f" ] || basename "$f" .control
  done
}

# The names of arrays that can be started.
_gpuraid_described ()
{
  local f

  for f in /etc/gpuraid.d/*.conf; do
    [ ! -e "$f" ] || basename "$f" .conf
  done
}

_gpuraid ()
{
  local command=${COMP_WORDS[1]} usage words i nr=0

  if [ "$COMP_CWORD" -eq 1 ]; then
    words=$("$1" --help 2>/dev/null | sed -n 's/^  gpuraid \([a-z-]*\) .*/\1/p')
    COMPREPLY=($(compgen -W "$words --help --version" -- "$2"))
    return
  fi
  usage=$("$1" "$command" --help 2>/dev/null)

  # Options, as in "[--force]" or "  -k LIST"; keys, as in "chunk="; and
  # words, as in "[start|stop]" or "NEW|pause".
  words=$(grep -oE '(^|[[ |])(-[a-z]|--[a-z-]+)|[a-z-]+=' <<<"$usage" |
            tr -d '[ |')
  case "$2" in
    -*) ;;
    *)
      words+=" $(grep -oE '(\[[A-Za-z_]+|NEW)(\|[A-Za-z_]+)+' <<<"$usage" |
                   tr '[|' '\n' | grep -x '[a-z]*')"
      words=$(tr ' ' '\n' <<<"$words" | grep -v '^-')
      for ((i = 2; i < COMP_CWORD; i++)); do
        case "${COMP_WORDS[i]}" in -*) ;; *) nr=$((nr + 1)) ;; esac
      done
      # Arrays come first.
      if [ $nr -eq 0 ]; then
        case "$command ${usage%%$'\n'*}" in
          start\ *) words=$(_gpuraid_described) ;;
          *[\ \[]CONTROL*|*[\ \[]NAME*) words=$(_gpuraid_running) ;;
        esac
      fi
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$2"))
  case "${COMPREPLY[*]}" in
    *=) compopt -o nospace 2>/dev/null ;;
  esac
}

# Where nothing of these fits it is the name of a file.
complete -o default -F _gpuraid gpuraid
