#!/bin/sh
# Installs the executable of Holdfast for this machine. It checks the signature and the digest before it writes to the
# target folder.
#
#   sh install.sh [--to FOLDER] [--from URL] [--public-key KEY]
#
# It needs curl or wget, and minisign or OpenSSL 3. To install a newer version later, run "holdfast upgrade".
set -eu

url='@URL@'
key='@PUBLIC_KEY@'
release='@VERSION@'
folder=/usr/local/bin
max_list_bytes=65536
max_executable_bytes=1073741824

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

usage() {
  echo 'install.sh: use: sh install.sh [--to FOLDER] [--from URL] [--public-key KEY]' >&2
  exit 2
}

# The platform of this machine, as the release names it.
platform() {
  system=$(uname -s)
  case $(uname -m) in
    x86_64 | amd64) processor=x64 ;;
    aarch64 | arm64) processor=arm64 ;;
    *) fail "there is no executable for the processor $(uname -m)" ;;
  esac
  case $system in
    Darwin) echo "darwin-$processor" ;;
    Linux)
      if [ -e /lib/ld-musl-x86_64.so.1 ] || [ -e /lib/ld-musl-aarch64.so.1 ]; then
        # Another C library may be there too, as on Debian with its package "musl".
        if [ ! -e /lib64/ld-linux-x86-64.so.2 ] && [ ! -e /lib/ld-linux-aarch64.so.1 ]; then
          echo "linux-$processor-musl"
          return
        fi
      fi
      if [ "$processor" = x64 ] && ! grep -q '\bavx2\b' /proc/cpuinfo; then
        echo linux-x64-baseline
      else
        echo "linux-$processor"
      fi
      ;;
    *) fail "there is no executable for $system; for Windows, download it by hand" ;;
  esac
}

# fetch NAME MAX_BYTES: download a file of the release. A longer one is cut off.
fetch() {
  case $url in
    https://*) only='=https' ;;
    http://127.0.0.1:* | http://localhost:* | 'http://[::1]:'*) only='=http' ;;
    *) fail "$url is not an https address" ;;
  esac
  if has curl; then
    curl --fail --silent --show-error --location --proto "$only" --proto-redir "$only" --connect-timeout 20 \
      --speed-limit 1000 --speed-time 60 "$url/$1" | head -c "$2" >"$work/$1"
  elif has wget; then
    wget -q -T 60 -O - "$url/$1" | head -c "$2" >"$work/$1"
  else
    fail 'neither curl nor wget is installed'
  fi
  [ -s "$work/$1" ] || fail "$url/$1 cannot be downloaded"
}

# verified FILE: whether FILE.minisig is a signature of the file by the key, in the form of minisign.
verified() {
  if has minisign; then
    minisign -Vqm "$1" -P "$key"
    return
  fi
  has openssl || fail 'neither minisign nor openssl is installed: one of them has to check the signature'
  openssl dgst -blake2b512 -binary "$1" >"$work/digest" 2>/dev/null || fail 'this openssl is too old: install minisign'
  sed -n 2p "$1.minisig" | openssl base64 -d -A >"$work/signature.bin"
  printf %s "$key" | openssl base64 -d -A >"$work/key.bin"
  [ "$(wc -c <"$work/signature.bin")" -eq 74 ] && [ "$(wc -c <"$work/key.bin")" -eq 42 ] || return 1
  [ "$(head -c 2 "$work/signature.bin")" = ED ] && [ "$(head -c 2 "$work/key.bin")" = Ed ] || return 1
  # The same number of the key in both.
  [ "$(head -c 10 "$work/signature.bin" | tail -c 8 | od -An -tx1)" = \
    "$(head -c 10 "$work/key.bin" | tail -c 8 | od -An -tx1)" ] || return 1
  # The 32 bytes of the key, in the form that openssl reads (RFC 8410).
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 "$work/key.bin"; } >"$work/key.der"
  tail -c 64 "$work/signature.bin" >"$work/signature"
  { cat "$work/signature" && sed -n 3p "$1.minisig" | sed 's/^trusted comment: //' | tr -d '\n'; } >"$work/comment"
  sed -n 4p "$1.minisig" | openssl base64 -d -A >"$work/comment.signature"
  signed "$work/digest" "$work/signature" && signed "$work/comment" "$work/comment.signature"
}

# signed FILE SIGNATURE: whether the bytes of the file have this signature, of 64 bytes.
signed() {
  openssl pkeyutl -verify -pubin -keyform DER -inkey "$work/key.der" -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}

sha256() {
  if has sha256sum; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif has shasum; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  else
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  fi
}

main() {
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
      --to) folder=$2 ;;
      --from) url=${2%/} ;;
      --public-key) key=$2 ;;
      *) usage ;;
    esac
    shift 2
  done
  [ -d "$folder" ] || fail "$folder is not a folder"
  [ -w "$folder" ] || fail "this user cannot write to $folder: run it as root, or add --to FOLDER"

  work=$(mktemp -d)
  part=$folder/.holdfast-install.$$
  trap 'rm -rf "$work" "$part"' EXIT
  trap 'exit 1' HUP INT TERM

  name=holdfast-$(platform)
  fetch SHA256SUMS "$max_list_bytes"
  fetch SHA256SUMS.minisig "$max_list_bytes"
  verified "$work/SHA256SUMS" || fail "the signature of $url/SHA256SUMS is not one by $key. Nothing was installed"
  # The comment is signed too: the list of an older release is no list of this one.
  sed -n 3p "$work/SHA256SUMS.minisig" | tr '\t' '\n' | grep -qxF "version:$release" ||
    fail "$url/SHA256SUMS is that of another version than $release: download this script again. Nothing was installed"
  digest=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$work/SHA256SUMS")
  [ -n "$digest" ] || fail "this release has no $name"

  if [ -e "$folder/holdfast" ]; then
    [ "$(sha256 "$folder/holdfast")" != "$digest" ] || {
      echo "$folder/holdfast is this version already"
      return
    }
    fail "$folder/holdfast is another version: run \"holdfast upgrade\""
  fi

  echo "downloading $url/$name"
  fetch "$name" "$max_executable_bytes"
  [ "$(sha256 "$work/$name")" = "$digest" ] || fail "$url/$name was changed or cut off. Nothing was installed"
  cp "$work/$name" "$part"
  chmod 755 "$part"
  version=$("$part" version) || fail "$name does not run on this machine. Nothing was installed"
  mv "$part" "$folder/holdfast"
  echo "$version is installed as $folder/holdfast"
  echo "To set up a server: $folder/holdfast init --service"
}

# The last line: a script that was cut off does nothing.
main "$@"
