# SPDX-License-Identifier: BSD-2-Clause
"""The table of what is tried with a foreign peer. Each row is tried with either side as the server and over each of
its address families. A row passes when both ends exit with 0 and neither prints what is in WRONG."""

import collections

# name: what it is called; program: as the shell knows it, {exchange} is our own; options: for both ends;
# few: whether it belongs to the few cases of `make test`; families: of the GIDs. The programs agree about the rest
# over TCP, which is IPv4 always; or they connect by librdmacm: then server and client have options of their own.
Case = collections.namedtuple('Case', 'name program options few families roles', defaults=(None,))

IPV4, IPV6 = 'ipv4', 'ipv6'
BOTH = (IPV4, IPV6)

# What a program prints when it found wrong bytes, but exits with 0.
WRONG = ('invalid data',)

# How each program is told the device and the index of the GID.
PINGPONG = '-d {device} -g {gid} -p {port}'
PERFTEST = '-d {device} -x {gid} -p {port} -F'
EXCHANGE = '-d {device} -g {gid} -p {port}'


def pingpong(program, options='', few=False, families=BOTH):
    name = ' '.join([program, options]).strip()
    return Case(name, program, f'{PINGPONG} {options}', few, families)


def perftest(program, options='', few=False, families=BOTH):
    name = ' '.join([program, options]).strip()
    return Case(name, program, f'{PERFTEST} {options}', few, families)


def exchange(options='', few=False, families=BOTH):
    """Every kind of operation in both directions at once, each byte checked on both sides (exchange.c)."""
    name = ' '.join(['exchange', options]).strip()
    return Case(name, '{exchange}', f'{EXCHANGE} {options}', few, families)


def connecting(program, options='', few=False, server='-b {server}', client='-s {server}', families=BOTH):
    """The server's address stands for {server} in what the two are told."""
    name = ' '.join([program, options]).strip()
    return Case(name, program, options, few, families, (server, client))


CASES = (
    connecting('rping', '-v -C 20', few=True, server='-s -a {server}', client='-c -a {server}'),
    connecting('ucmatose', '-c 5', few=True),
    connecting('udaddy', '-c 3', few=True),
    connecting('rdma_server', '', server='', client='-s {server}', families=(IPV4,)),
    exchange('-c rc -n 40', few=True),
    exchange('-c rc -n 20 -m 256'),
    exchange('-c rc -n 20 -m 4096 -s 200000'),
    exchange('-c rc -n 10 -l'),
    exchange('-c uc -n 20'),
    exchange('-c ud -n 20'),
    pingpong('ibv_rc_pingpong', '-c -n 100'),
    pingpong('ibv_rc_pingpong', '-c -e -m 256 -s 65536 -n 20'),
    pingpong('ibv_uc_pingpong', '-c -n 100'),
    pingpong('ibv_ud_pingpong', '-c -s 1024 -n 100'),
    pingpong('ibv_srq_pingpong', '-c -n 100'),
    perftest('ib_write_bw', '-n 100'),
    perftest('ib_write_bw', '-n 100 -q 4 -b'),
    perftest('ib_write_lat', '-n 100'),
    perftest('ib_read_bw', '-n 100'),
    perftest('ib_read_lat', '-n 100'),
    perftest('ib_send_bw', '-n 100'),
    perftest('ib_send_bw', '-n 100 -r 16 -e'),
    perftest('ib_send_lat', '-n 100 -c UD'),
    perftest('ib_atomic_bw', '-n 100'),
)
