#!/bin/busybox sh
# The first process of a lab machine, in its initrd: the host's files become its root, read-only beneath a layer in memory.
# The command line of the kernel gives lab.kernel (the folder with the modules), lab.python and lab.agent (what runs then).
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for word in $(cat /proc/cmdline); do
    case $word in
    lab.kernel=*) kernel=${word#*=} ;;
    lab.python=*) python=${word#*=} ;;
    lab.agent=*) agent=${word#*=} ;;
    esac
done
while read -r module; do insmod "/modules/$module"; done </modules/order

mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=1048576,cache=loose host /host
mount -t tmpfs layers /layers
mkdir /layers/upper /layers/work
mount -t overlay overlay -o lowerdir=/host,upperdir=/layers/upper,workdir=/layers/work /root
for kind in proc sys dev; do mount --move "/$kind" "/root/$kind"; done
for place in run tmp; do mount -t tmpfs "$place" "/root/$place"; done
mkdir -p /root/run/lab /root/run/lock /root/dev/pts /root/dev/shm /root/lib/modules
mount -t devpts devpts /root/dev/pts
mount -t tmpfs shm /root/dev/shm
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none lab /root/run/lab
mount --bind "/root$kernel/lib/modules" /root/lib/modules
# After switch_root the kernel finds /sbin/modprobe and the modules where it looks for them.
exec switch_root /root "$python" "$agent"
