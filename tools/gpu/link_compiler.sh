#!/usr/bin/env bash
# Links a program of the build once more, with the parts of LLVM and MLIR that it uses inside: link_compiler.sh TARGET FILE
# Their shared libraries are too large to be packed beside it, and the machine that runs it has none.
# BUILD names the build folder (default: build/default).
set -euo pipefail
target="$1"
file="$(realpath -m "$2")"
cd "${BUILD:-build/default}"

command="$(ninja -t commands "$target" | tail -1)"
shared="$(grep -o '[^ ]*/libMLIR\.so[^ ]*' <<< "$command")"
folder="$(dirname "$shared")"
static="$(find "$folder" -name 'libMLIR*.a' -o -name 'libLLVM*.a' |
  grep -v -e libMLIRCAPI -e _main -e libLLVMTableGen -e libLLVMTesting -e Fuzzer | sort | tr '\n' ' ')"
zstd="$(ldd "$(grep -o '[^ ]*/libLLVM\.so[^ ]*' <<< "$command")" | awk '$1 ~ /^libzstd/ { print $3 }')"
command="${command//$shared/-Wl,--start-group $static -Wl,--end-group}"
command="$(sed -E "s# [^ ]*/libLLVM\.so[^ ]*# -lz $zstd#; s# -o $target # -Wl,--gc-sections -o $file #" <<< "$command")"
eval "$command"
