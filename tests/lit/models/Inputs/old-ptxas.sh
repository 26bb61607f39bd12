#!/bin/sh
# A ptxas that does not know sm_90, and says of a kernel for sm_80 what one would say.
case "$*" in
*sm_90*)
  echo "ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'" >&2
  exit 1
  ;;
esac
for input; do :; done
sed -n 's/^.*\.entry \([A-Za-z0-9_.$]*\).*$/\1/p' "$input" | while read -r kernel; do
  echo "ptxas info    : Compiling entry function '$kernel' for 'sm_80'"
  echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
  echo "ptxas info    : Used 32 registers, 400 bytes cmem[0]"
done
