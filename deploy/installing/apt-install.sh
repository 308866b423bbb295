#!/bin/sh
# Run as root: apt-install.sh PACKAGE… Installs programs without starting their system services, which would take
# the default ports from ours: the product runs its own Redis and PostgreSQL.
set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
for service in redis-server postgresql prometheus-alertmanager; do
    case " $* " in
        *" $service "*) [ -d /run/systemd/system ] && systemctl disable "$service" || true ;;
    esac
done
