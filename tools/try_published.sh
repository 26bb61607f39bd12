#!/usr/bin/env bash
# Fetches published weights and has mpc-train begin from them, for a step on synthetic data. Needs a network and curl;
# torchvision's files need a Python with torch and safetensors, too, for they are pickles. docs/weights.md says which
# networks were tried.
#   tools/try_published.sh [FOLDER]    FOLDER: where files are kept; default: .deps/published
# Environment: MPC_BUILD (build/default), MPC_PYTHON (python3).
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
train="${MPC_BUILD:-$root/build/default}/bin/mpc-train"
python="${MPC_PYTHON:-python3}"
folder="${1:-$root/.deps/published}"
mkdir -p "$folder"

fetch() {  # URL FILE
  [[ -s "$2" ]] && return
  curl --fail --location --silent --show-error --output "$2.part" "$1"
  mv "$2.part" "$2"
}

try() {  # NAME FILE FLAGS...
  local name="$1" file="$2"
  shift 2
  if "$train" "$@" --init="$file" --steps=1 --batch-size=1 --quiet > /dev/null; then
    echo "try_published: $name loads"
  else
    echo "try_published: $name does not load" >&2
    failed=1
  fi
}

failed=0
for name in gpt2 bert; do
  repository="openai-community/gpt2"
  [[ "$name" == bert ]] && repository="google-bert/bert-base-uncased"
  fetch "https://huggingface.co/$repository/resolve/main/model.safetensors" "$folder/$name.safetensors"
  try "$repository" "$folder/$name.safetensors" "$name" --tokens=8
done

for size in tiny small base; do
  repository="timm/vit_${size}_patch16_224.augreg_in21k_ft_in1k"
  fetch "https://huggingface.co/$repository/resolve/main/model.safetensors" "$folder/vit_$size.safetensors"
  try "$repository" "$folder/vit_$size.safetensors" "vit_${size}_patch16_224"
done

for file in resnet18-f37072fd resnet50-0676ba61; do
  name="${file%%-*}"
  fetch "https://download.pytorch.org/models/$file.pth" "$folder/$file.pth"
  [[ -s "$folder/$file.safetensors" ]] || "$python" - "$folder/$file.pth" "$folder/$file.safetensors" <<'PYTHON'
import sys, torch; from safetensors.torch import save_file
save_file({k: v.clone().contiguous() for k, v in torch.load(sys.argv[1], map_location="cpu", weights_only=True).items()}, sys.argv[2])
PYTHON
  try "torchvision/$name" "$folder/$file.safetensors" "$name-imagenet" --image-size=64
done
exit "$failed"
