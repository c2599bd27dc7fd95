# SPDX-License-Identifier: BSD-2-Clause
"""The table of cases with a foreign peer. Each row is tried with either side as the server and over
each of its address families. A row passes when both ends exit with 0 and neither prints what is in
WRONG."""

import dataclasses

IPV4, IPV6 = 'ipv4', 'ipv6'
BOTH = (IPV4, IPV6)

# The output of a program that found wrong bytes or had an error, but exits with 0.
WRONG = ('invalid data', 'data verification failed', 'return status -')


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    # The commands of server and client: {exchange}, {mishap} and {window} are programs of our own;
    # {server} and {client} are addresses of the family, {host} is the server's IPv4 address;
    # {device} and {gid} are those of the side that runs the command.
    server: str
    client: str
    few: bool = False           # belongs to the few cases of `make test`
    families: tuple = BOTH
    # The multicast address that the server joins; other servers listen on {port}.
    group: str = ''
    fixed_port: int = 0         # of a program with a fixed port: one at a time
    # why the kernel does not pass with itself either, which is tried: both must fail
    kernel_fails: str = ''
    failing_servers: tuple = ('peer', 'ours')   # the sides that fail for that reason as the server
    faults: str = ''            # of the link, in netem's words: see faults.py
    # both ends must print what they print when both are the kernel's: see mishap.c
    is_mishap: bool = False
    # Where we differ from the kernel on purpose: which side is the server then, our output in place
    # of the kernel's, and why.
    differs: tuple = ()

    @property
    def lane(self):
        """Cases of one lane do not run at the same time: those with one port, and those of UC and
        UD. Some of these send faster than the guest receives, and others wait for ever for a packet
        that was lost meanwhile, which is never retransmitted."""
        is_unreliable = any(words in self.name for words in ('-c UC', '-c UD', 'uc_pingpong', 'ud_pingpong'))
        return self.fixed_port or ('unreliable' if is_unreliable else None)


def named(program, options):
    return ' '.join([program, options]).strip()


def paired(program, common, options, **settings):
    """The programs agree about the rest over TCP, which is always IPv4."""
    words = f'{program} {common} {options}'
    name = settings.pop('name', named(program.strip('{}'), options))
    return Case(name, words, f'{words} {{host}}', **settings)


def pingpong(program, options='', **settings):
    return paired(program, '-d {device} -g {gid} -p {port}', options, **settings)


def perftest(program, options='', **settings):
    # By default perftest waits 0.07 s for an answer: too short for an emulated CPU.
    return paired(program, '-d {device} -x {gid} -p {port} -F -u 18', options, **settings)


def perftest_cm(program, options='', **settings):
    """Over librdmacm: the address chooses the device. This program looks up IPv4 addresses only."""
    words = f'{program} -R -p {{port}} -F {options}'
    return Case(f'{program} -R {options}'.strip(), words, f'{words} {{server}}', families=(IPV4,), **settings)


def exchange(options='', **settings):
    """Every kind of operation in both directions at the same time, each byte checked on both sides
    (exchange.c)."""
    return paired('{exchange}', '-d {device} -g {gid} -p {port}', options, **settings)


def window(options='', **settings):
    """Memory windows, and sends that invalidate them (window.c)."""
    return paired('{window}', '-d {device} -g {gid} -p {port}', options, **settings)


def mishap(kind, **settings):
    """Something goes wrong: both ends must print what two ends of the kernel print (mishap.c)."""
    return paired('{mishap}', '-d {device} -g {gid} -p {port}', f'-k {kind}', is_mishap=True, families=(IPV4,), **settings)


def faulty(faults, options, **settings):
    return exchange(options, faults=faults, name=f'exchange {options}, {faults}', **settings)


def connecting(program, options='', server='-b {server} -p {port}', client='-s {server} -p {port}', **settings):
    return Case(named(program, options), named(f'{program} {server}', options),
                named(f'{program.replace("server", "client")} {client}', options), **settings)


def qperf(test, **settings):
    """qperf cannot choose a GID: only tests that connect over librdmacm work on RoCE."""
    return Case(f'qperf -cm 1 {test}', 'qperf -lp {port}', f'qperf -lp {{port}} {{host}} -cm 1 -t 1 {test} quit',
                families=(IPV4,), **settings)


PINGPONGS = (
    pingpong('ibv_rc_pingpong', '-c -n 100', few=True),
    pingpong('ibv_rc_pingpong', '-c -e -m 256 -s 65536 -n 20'),
    pingpong('ibv_rc_pingpong', '-c -m 512 -s 20000 -n 20'),
    pingpong('ibv_rc_pingpong', '-c -m 2048 -s 20000 -n 20'),
    pingpong('ibv_rc_pingpong', '-c -m 4096 -s 100000 -n 20'),
    pingpong('ibv_uc_pingpong', '-c -n 100'),
    pingpong('ibv_uc_pingpong', '-c -e -m 4096 -s 30000 -n 20'),
    pingpong('ibv_ud_pingpong', '-c -s 1024 -n 100'),
    pingpong('ibv_ud_pingpong', '-c -e -s 2048 -n 20'),
    pingpong('ibv_srq_pingpong', '-c -n 100'),
    pingpong('ibv_srq_pingpong', '-c -e -q 4 -n 50'),
)

# A case with -a is tried over one family only: perftest measures the CPU's clock for each size.
PERFTESTS = (
    perftest('ib_send_bw', '-n 100', few=True),
    perftest('ib_send_bw', '-a -n 5', families=(IPV4,)),
    perftest('ib_send_bw', '-n 100 -b'),
    perftest('ib_send_bw', '-n 100 -q 4'),
    perftest('ib_send_bw', '-n 100 -s 64 -I 64'),
    perftest('ib_send_bw', '-n 100 -r 16 -e'),
    # nothing slows a sender down: what is lost is waited for
    perftest('ib_send_bw', '-n 50 -c UC -s 2048'),
    perftest('ib_send_bw', '-n 50 -c UC -s 1024 -b'),
    perftest('ib_send_bw', '-n 100 -c UD'),
    perftest('ib_send_bw', '-n 20 -c UD -a', families=(IPV4,)),
    perftest('ib_send_lat', '-n 20'),
    # enough for a connected transmit socket: numbered packets
    perftest('ib_send_lat', '-n 500', families=(IPV4,), few=True),
    perftest('ib_send_lat', '-a -n 5', families=(IPV6,)),
    perftest('ib_send_lat', '-n 20 -s 64 -I 64'),
    perftest('ib_send_lat', '-n 20 -e'),
    perftest('ib_send_lat', '-n 20 -c UC'),
    perftest('ib_send_lat', '-n 20 -c UC -s 30000'),
    perftest('ib_send_lat', '-n 20 -c UD', few=True),
    perftest('ib_send_lat', '-n 10 -c UD -a', families=(IPV6,)),
    perftest('ib_write_bw', '-n 100', few=True),
    perftest('ib_write_bw', '-a -n 5', families=(IPV4,)),
    perftest('ib_write_bw', '-n 100 -b'),
    perftest('ib_write_bw', '-n 50 -q 4 -b'),
    perftest('ib_write_bw', '-n 100 -s 64 -I 64'),
    perftest('ib_write_bw', '-n 100 -m 256 -s 10000'),
    perftest('ib_write_bw', '-n 100 -m 512 -s 10000'),
    perftest('ib_write_bw', '-n 100 -m 1024 -s 10000'),
    perftest('ib_write_bw', '-n 100 -m 2048 -s 10000'),
    perftest('ib_write_bw', '-n 100 -m 4096 -s 10000'),
    perftest('ib_write_bw', '-n 100 -c UC'),
    perftest('ib_write_bw', '-n 10 -c UC -a', families=(IPV6,)),
    perftest('ib_write_lat', '-n 20'),
    perftest('ib_write_lat', '-n 20 -s 65536'),             # spins on memory: -a would take minutes
    perftest('ib_write_lat', '-n 20 -s 64 -I 64'),
    perftest('ib_write_lat', '-n 20 -c UC'),
    perftest('ib_read_bw', '-n 100', few=True),
    perftest('ib_read_bw', '-a -n 5', families=(IPV4,)),
    perftest('ib_read_bw', '-n 50 -b -q 2'),
    perftest('ib_read_bw', '-n 50 -o 1 -m 256 -s 10000'),
    perftest('ib_read_bw', '-n 50 -e'),
    perftest('ib_read_lat', '-n 20'),
    perftest('ib_read_lat', '-a -n 5', families=(IPV6,)),
    perftest('ib_atomic_bw', '-n 100', few=True),
    perftest('ib_atomic_bw', '-n 100 -A CMP_AND_SWAP -b'),
    perftest('ib_atomic_bw', '-n 50 -q 4'),
    perftest('ib_atomic_lat', '-n 20'),
    perftest('ib_atomic_lat', '-n 20 -A CMP_AND_SWAP'),
)

CONNECTIONS = (
    connecting('rping', '-v -V -C 20', few=True, server='-s -a {server} -p {port}', client='-c -a {server} -p {port}'),
    connecting('rping', '-S 60000 -V -C 5', server='-s -a {server} -p {port}', client='-c -a {server} -p {port}'),
    connecting('ucmatose', '-c 5', few=True),
    connecting('ucmatose', '-c 100 -C 2'),
    connecting('udaddy', '-c 3', server='-b {server}', client='-s {server}', fixed_port=7174),
    connecting('udaddy', '-c 20 -C 5 -S 1000', server='-b {server}', client='-s {server}', fixed_port=7174),
    connecting('mckey', '-m 239.77.0.1 -C 5', server='-b {server}', client='-s -b {client}', families=(IPV4,),
               group='239.77.0.1', few=True),
    connecting('mckey', '-m ff0e::77:1 -C 5', server='-b {server}', client='-s -b {client}', families=(IPV6,),
               group='ff0e::77:1', kernel_fails='it joins no IPv6 groups on RoCE'),
    connecting('rdma_server', '', server='-p {port}', client='-s {server} -p {port}', families=(IPV4,)),
    qperf('rc_lat'),
    qperf('rc_bw'),
    qperf('rc_rdma_write_bw'),
    qperf('rc_rdma_read_bw'),
    perftest_cm('ib_send_bw', '-n 100', few=True),
    perftest_cm('ib_send_bw', '-a -n 5'),
    perftest_cm('ib_send_bw', '-n 100 -b -q 4'),
    perftest_cm('ib_send_bw', '-n 100 -r 16 -e'),
    perftest_cm('ib_send_bw', '-n 100 -c UD'),
    perftest_cm('ib_send_lat', '-n 20 -I 64 -s 64'),
    perftest_cm('ib_send_lat', '-n 20 -c UD'),
    perftest_cm('ib_write_bw', '-n 100'),
    perftest_cm('ib_write_bw', '-n 100 -b'),
    perftest_cm('ib_write_lat', '-n 20'),
    perftest_cm('ib_read_bw', '-n 100'),
    perftest_cm('ib_read_lat', '-n 20'),
    perftest_cm('ib_atomic_bw', '-n 100'),
    perftest_cm('ib_atomic_lat', '-n 20'),
)

OUR_OWN = (
    exchange('-c rc -n 20', few=True),
    exchange('-c rc -n 20 -m 256'),
    exchange('-c rc -n 20 -m 512'),
    exchange('-c rc -n 20 -m 2048'),
    exchange('-c rc -n 10 -m 4096 -s 200000'),
    exchange('-c rc -n 10 -l'),
    exchange('-c uc -n 20'),
    exchange('-c uc -n 10 -m 4096'),
    exchange('-c ud -n 20'),
    exchange('-c ud -n 10 -m 4096'),
    window('-t 1'),
    window('-t 2', few=True),
    window('-t 2-remote', kernel_fails='it has another flag for a receive that invalidated a key', failing_servers=('peer',)),
)

TOO_LONG = ('ours', (('remote operation error', 'remote invalid request error'), ('local QP operation error', 'local length error')),
            'a receive that is too short is a length error here and an invalid request there, as with adapters')
LOCAL_KEY = ('peer', (('local QP operation error', 'local protection error'),),
             'memory that the request may not use is a protection error, as with adapters')

MISHAPS = tuple(mishap(kind, few=kind == 'write-wrong-key') for kind in (
    'nothing', 'write-wrong-key', 'read-wrong-key', 'atomic-wrong-key', 'write-no-right', 'read-no-right',
    'atomic-no-right', 'write-behind-end', 'read-behind-end', 'write-deregistered',
    'write-denied-by-qp', 'read-denied-by-qp', 'atomic-denied-by-qp', 'send-no-receive', 'immediate-no-receive', 'read-to-read-only',
    'peer-leaves', 'peer-dies', 'peer-resets')) + (
    mishap('send-too-long', differs=TOO_LONG),
    mishap('send-too-long-in-packets', differs=TOO_LONG),
    mishap('send-wrong-local-key', differs=LOCAL_KEY),
)

FAULTY_MTU = 1024
FAULTS = (
    faulty('loss 1%', '-c rc -n 20', few=True),
    faulty('duplicate 2%', '-c rc -n 20'),
    faulty('delay 2ms reorder 10%', '-c rc -n 5'),
    faulty('corrupt 1%', '-c rc -n 20', families=(IPV4,)),
    faulty('loss 1% duplicate 1% corrupt 1%', '-c rc -n 20', families=(IPV4,)),
)

CASES = PINGPONGS + PERFTESTS + CONNECTIONS + OUR_OWN + MISHAPS + FAULTS
