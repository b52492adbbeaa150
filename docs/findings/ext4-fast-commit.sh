#!/bin/sh
# Shows without Landfall that ext4 with fast commits cannot be mounted from the disk's contents at certain
# moments, although nothing is in flight: appends 8 KiB and calls fdatasync, N times, and after each copies
# the idle image and mounts the copy. See ext4-fast-commit.md.
#
#   sudo docs/findings/ext4-fast-commit.sh [N] [options of mkfs.ext4]
#   sudo docs/findings/ext4-fast-commit.sh 40                             16 and 32 fail
#   sudo docs/findings/ext4-fast-commit.sh 40 -b 4096 -J size=4           nothing fails: no fast commits
#   KEEP=bad.img sudo -E docs/findings/ext4-fast-commit.sh 16             keeps the copy that fails
set -eu

times=${1:-40}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- -b 4096 -J size=4 -O fast_commit

here=$(mktemp -d)
live= copied=
clean_up() {
  umount "$here/copy" 2>/dev/null || true
  umount "$here/live" 2>/dev/null || true
  [ -z "$copied" ] || losetup -d "$copied" || true
  [ -z "$live" ] || losetup -d "$live" || true
  rm -rf "$here"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
mkdir "$here/live" "$here/copy"

# Written zeros: the image has no holes, and the copy is the whole disk.
dd if=/dev/zero of="$here/image" bs=1M count=64 conv=fsync status=none
live=$(losetup -f --show --direct-io=on "$here/image")
mkfs.ext4 -q -F "$@" "$live"
# Without commit=600 a full commit by the kernel's timer, after 5 seconds, may come before the area is full.
mount -o commit=600 "$live" "$here/live"
dumpe2fs -h "$live" 2>/dev/null | grep -E '^(Total journal blocks|Fast commit length)' || true

n=0 failed=0
while [ "$n" -lt "$times" ]; do
  n=$((n + 1))
  dd if=/dev/zero of="$here/live/file" bs=8192 count=1 oflag=append conv=notrunc,fdatasync status=none
  cp --sparse=never "$here/image" "$here/image.copy"
  copied=$(losetup -f --show "$here/image.copy")
  if complaint=$(mount "$copied" "$here/copy" 2>&1); then
    echo "$n: mounts, $(stat -c %s "$here/copy/file" 2>/dev/null || echo no file) bytes of $((n * 8192))"
    umount "$here/copy"
  else
    failed=$((failed + 1))
    echo "$n: DOES NOT MOUNT: $(echo "$complaint" | head -n 1)"
    [ -z "${KEEP:-}" ] || cp "$here/image.copy" "$KEEP"
  fi
  losetup -d "$copied"
  copied=
done
echo "$failed of $n copies cannot be mounted; Linux $(uname -r), $(mkfs.ext4 -V 2>&1 | head -n 1)"
[ "$failed" = 0 ]
