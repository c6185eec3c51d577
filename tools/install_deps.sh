#!/usr/bin/env bash
# Installs the Debian packages the build and the tests need, if they are missing. Debian 12 and Ubuntu 24.04.
set -euo pipefail
packages=(g++ cmake ninja-build ccache git make python3
  nlohmann-json3-dev libcli11-dev libxxhash-dev libpcre2-dev zlib1g-dev libgtest-dev clang-format-19)
if [ "${SAMEBITS_CI:-}" = 1 ]; then packages+=(clang-19 clang-tidy-19 libclang-rt-19-dev); fi

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}" >&2
sudo=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "these packages are missing and you are not root: apt-get install ${missing[*]}" >&2; exit 2; }
  sudo=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
