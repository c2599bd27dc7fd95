# SPDX-License-Identifier: BSD-2-Clause
"""Programs of the distribution on verbatim: the list of them, the networks they run in, running one
and judging it."""

import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from support_own import Workshop, bring_files, collect_files, tools_of

os.environ['PATH'] += ':/usr/sbin:/sbin'        # where ip and ethtool may be
HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get('VB_BUILD_RELEASE') or HERE.parent.parent / 'build')
INSIDE = 'VB_IN_NAMESPACE'
LOG = 'verbatim.log'    # what the adapters of a case report
TIME_MAX = 300      # seconds that a program gets: far more than it needs
TRIES_WITH_A_CLOCK = 5
HOPELESS_TIME_MAX = 10   # … and a program that is expected to fail
# the interfaces between the two namespaces, by name, and their MTUs
WIRES = {'wire': 9000, 'thin': 1500}
PLACES = {'host': ['host', 'loop'], 'wire': ['wire'], 'thin': ['thin'], 'both': ['host', 'loop', 'wire']}
# places in one namespace, and the path that programs must take
ONE_HOST = {'host': 'auto', 'loop': 'wire'}

# What programs print at the end when all went well.
SAYS = {
    r'ibv_devices': r'^ +{device} +\t[0-9a-f]{{16}}$',
    r'ibv_devinfo -l': r'^\t{device}$',
    r'ibv_devinfo': r'state:\t+PORT_ACTIVE',
    r'ibv_asyncwatch': r'^{device}: async event FD',
    r'ibv_xsrq_pingpong': r'^success$',
    r'ibv_\w+_pingpong': r'^\d+ iters in .* usec/iter$',
    r'ib_': r'^ *\d+ +\d+ +[\d.]+',
    r'rping': r'^ping data: rdma-ping-',
    r'ucmatose|udaddy|mckey': r'^return status 0$',
    r'cmtime': r'^destroy +: +[\d.]+',
    r'rdma_x?server': r'^rdma_x?client: end 0$',
    r'qperf': r'^ +\w+ += +[\d.]+',
    r'fio': r'err= 0',
    r'ucx_perftest': r'^Final: +\d+ +[\d.]+',
    r'ucx_info': r'^# +Device: {device}:1$',
    r'io_demo': r"Client exit with status 'OK'$",
    r'ucx/exchange': r'^exchange: all bytes were right$',
    r'fi_info': r'^    domain: {device}',
    r'fi_pingpong': r'^\d+[km]? +\d+ +=\d+ ',
    r'mpirun.* NP': r'^ *\d+: +\d+ bytes',
    r'mpirun.* hpcc': r'^Success=1$',
    r'mpirun': r'^\w+: all (bytes|numbers) were right (between|with) \d+ ',
    r'oshrun': r'^exchange: all numbers were right between \d+ processes$',
}

# What they print while they run, if their server is to be killed, and when they have noticed it.
UNDER_WAY = r'^\[thread 0\] |^exchange: under way$'
NOTICED = r'transport retry counter exceeded|^exchange: the peer has died: '

# What they print when they have found wrong data, but go on.
FOUND_WRONG = (r'invalid data|data corruption|Integrity check failed|locations \(failed\)|'
               r'[1-9]\d* tests completed and failed residual checks')

# Programs that get the address of their peer: the arguments of the server and the client besides
# the flags of the list.
CONNECTING = {
    'rping': ('-s -a {server} -p {port}', '-c -a {server} -p {port}'),
    'ucmatose': ('-b {server}', '-b {client} -s {server}'),
    'udaddy': ('-b {server}', '-b {client} -s {server}'),
    'mckey': ('-b {server}', '-s -b {client}'),
    'cmtime': ('-b {server} -p {port}', '-s {server} -p {port}'),
    'rdma_server': ('-p {port}', '-s {server} -p {port}'),
    'rdma_xserver': ('-p {port}', '-s {server} -p {port}'),
    'qperf': ('-lp {port}', '-lp {port} {server}'),
    'fio': ('--name=server --ioengine=rdma --rw=read --port={port}',
            '--name=client --ioengine=rdma --rw=write --port={port} --hostname={server}'),
    'ucx_perftest': ('-p {port}', '-p {port} {server}'),
    'ucx/exchange': ('-p {port}', '-p {port} {server}'),
    'io_demo': ('-p {port}', '-p {port} {server}'),
    'fi_pingpong': ('-B {port}', '-P {port} {server}'),
}

# Programs that start a program on all hosts: their arguments everywhere, and those for two hosts.
# The two namespaces share their processors: no process may be bound to one.
LAUNCHING = {
    'mpirun.openmpi': ('--allow-run-as-root --oversubscribe --bind-to none',
                       '--mca plm_rsh_agent {agent} --map-by node --host {client}:8,{server}:8'),
    'mpirun.mpich': ('-bind-to none',
                     '-launcher ssh -launcher-exec {agent} -hosts {client},{server}'),
}
LAUNCHING['oshrun'] = LAUNCHING['mpirun.openmpi']


def expected_status(expectation):
    """The exit status of a program for which the list has this expectation; None: any."""
    if expectation.startswith('prints:'):
        return None
    return int(expectation.removeprefix('exits with ')) if expectation.startswith('exits') else 0


class Case:
    """One program with its flags at one place, and its expected result."""

    def __init__(self, place, command, expectation, is_quick):
        self.place = place
        self.command = command
        words = command.split()
        settings = list(itertools.takewhile(lambda word: re.match(r'[A-Z_]+=', word), words))
        self.environment = dict(word.split('=', 1) for word in settings)
        self.words = words[len(settings):]
        self.program = self.words[0]
        self.job_count = int(self.environment.pop('JOBS', '1'))
        self.is_server_killed = self.environment.pop('KILL', '') == 'server'
        self.status = expected_status(expectation)
        self.why_not = expectation.removeprefix('fails:').strip() if expectation.startswith('fails:') else ''
        self.is_quick = is_quick
        self.seconds_max = HOPELESS_TIME_MAX if self.why_not else TIME_MAX
        self.name = f'{place} {command}'
        self.device = 'vb_' + ('lo' if place in ONE_HOST else place)
        self.server_name = {'wire': '10.0.1.2', 'thin': '10.0.2.2'}.get(place, '127.0.0.1')
        self.is_perftest = self.program.startswith('ib_')
        self.is_connecting = self.program in CONNECTING
        self.is_launching = self.program in LAUNCHING
        self.is_pair = not self.is_connecting and (
            self.is_perftest or self.program.endswith('_pingpong'))
        # These servers run for ever.
        self.is_server_endless = self.program in ('cmtime', 'qperf', 'io_demo') or '-P' in self.words
        self.has_data = any(word.endswith('=DATA') for word in self.words)

    def tools(self):
        """What must be installed for this program."""
        return tools_of(self.words)

    def addresses(self):
        """The commands of the server and of the client."""
        return {'wire': ('10.0.1.2', '10.0.1.1'), 'thin': ('10.0.2.2', '10.0.2.1')}.get(
            self.place, ('127.0.0.1', '127.0.0.1'))

    def connecting_arguments(self, end, port):
        """Flags whose meaning depends on the end come first: qperf takes whatever follows a host's
        name for a test."""
        addresses = self.addresses()
        if ':' in self.words:
            addresses = ('::1', '::1') if self.place in ONE_HOST else ('fd00:1::2', 'fd00:1::1')
        roles = CONNECTING[self.program][end == 'client'].format(
            server=addresses[0], client=addresses[1], port=port).split()
        program = self.program.replace('server', end)
        words = [word for word in self.words[1:] if word != ':']
        if self.program in ('qperf', 'ucx_perftest') and end == 'server':
            words = []      # the client chooses what is done
        if self.program == 'fio' and end == 'server':
            words = [word.replace('--verb=send', '--verb=recv') for word in words]
        if end == 'client':
            words = [word for word in words if word != '-P']
        return [program] + roles + words

    def launching_arguments(self):
        server, client = self.addresses()
        everywhere, elsewhere = LAUNCHING[self.program]
        roles = everywhere if self.place in ONE_HOST else f'{everywhere} {elsewhere}'
        roles = roles.format(agent=HERE / 'support_agent.sh', server=server, client=client).split()
        return [self.program] + roles + self.words[1:]

    def arguments(self, directory, end):
        if self.is_launching:
            return self.launching_arguments()
        words = [word.replace('=DATA', f'={directory}/{end}.data') for word in self.words]
        if not self.is_pair:
            takes_device = self.program not in ('ibv_devices', 'ucx_info') and '-l' not in words
            return words + (['-d', self.device] if takes_device else [])
        words += ['-d', self.device]
        gid_flag = '-x' if self.is_perftest else '-g'
        if gid_flag not in words:
            words += [gid_flag, '1']
        return words + (['-F'] if self.is_perftest else [])

    def size(self):
        return int(self.words[self.words.index('-s') + 1]) if '-s' in self.words else 65536

    def is_both_ways(self):
        return '-b' in self.words or self.program == 'ib_send_lat'


def read_list():
    cases = []
    for number, line in enumerate((HERE / 'list').read_text().splitlines(), 1):
        if not line.strip() or line.startswith('#'):
            continue
        try:
            where, command, expectation = (part.strip() for part in line.split('|'))
            is_quick = where.startswith('+')
            places = PLACES[where.removeprefix('+').strip()]
        except (KeyError, ValueError):
            sys.exit(f'tests/clients/list:{number}: not understood: {line}')
        if not re.match(r'pass$|exits with \d+$|(fails|prints): \S', expectation):
            sys.exit(f'tests/clients/list:{number}: not an expectation: {expectation}')
        cases += [Case(place, command, expectation, is_quick) for place in places]
    return cases


# --- networks ------------------------------------------------------------------------------------


def enter_namespace():
    """Starts this program again in a network of its own, as root of it."""
    for unshare in (['unshare', '-rn'], ['unshare', '-n']):
        if subprocess.run(unshare + ['true'], stderr=subprocess.DEVNULL).returncode == 0:
            os.environ[INSIDE] = '1'
            os.execvp('unshare', unshare + [sys.executable] + sys.argv)


def ip(*words, prefix=()):
    subprocess.run([*prefix, 'ip', *words], check=True)


class Network:
    """Our namespace, and a second one, which is the server's when programs talk over a wire."""

    def __init__(self):
        self.why_no_wire = '' if INSIDE in os.environ else 'this user may not make network namespaces'
        self.enter = []
        self.holder = None
        self.workshop = Workshop()
        if not self.why_no_wire:
            ip('link', 'set', 'lo', 'up')
            self.lay_wires()

    def lay_wires(self):
        # The namespace lives until its process reads the end of a pipe that ends with us.
        self.holder = subprocess.Popen(['unshare', '-n', 'sh', '-c', 'echo; exec cat'],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.enter = ['nsenter', '-t', str(self.holder.pid), '-n']
        ip('link', 'set', 'lo', 'up', prefix=self.enter)
        for subnet, (name, mtu) in enumerate(WIRES.items(), 1):
            ip('link', 'add', name, 'mtu', str(mtu), 'type', 'veth',
               'peer', 'name', name, 'mtu', str(mtu), 'netns', str(self.holder.pid))
            for end, prefix in ((1, []), (2, self.enter)):
                # The kernel needs no time to look for other owners of the addresses.
                ip('link', 'set', name, 'addrgenmode', 'none', 'up', prefix=prefix)
                for address in (f'fe80::{subnet}:{end}/64', f'fd00:{subnet}::{end}/64'):
                    ip('address', 'add', address, 'dev', name, 'nodad', prefix=prefix)
                ip('address', 'add', f'10.0.{subnet}.{end}/24', 'dev', name, prefix=prefix)

    def prefix(self, case, end):
        return self.enter if case.place in WIRES and end == 'server' else []

    def close(self):
        if self.holder:
            self.holder.stdin.close()
            self.holder.wait()


# --- running -------------------------------------------------------------------------------------


class End:
    """One running program. Its output goes to a file, so that the program never waits for us."""

    def __init__(self, network, case, name, directory, more=()):
        self.name = name
        self.seconds_max = case.seconds_max
        self.status = case.status
        self.path = directory / name
        environment = dict(os.environ, VERBATIM_DEVICES=case.device.removeprefix('vb_'),
                           VERBATIM_PATH=ONE_HOST.get(case.place, 'auto'),
                           UCX_NET_DEVICES=f'{case.device}:1', VB_ENTER=' '.join(network.enter),
                           VERBATIM_SELF_CHECK='on', VERBATIM_LOG='info',
                           VERBATIM_LOG_FILE=str(directory / LOG))
        environment.update(case.environment)
        words = ([] if case.is_connecting else case.arguments(directory, name)) + list(more)
        if 'verbatim' not in words:     # if it is there, it stands in front of what a launcher starts
            words = ['verbatim', 'run'] + words
        words = [str(BUILD / word) if word == 'verbatim' else word for word in words]
        command = network.prefix(case, name) + network.workshop.place(words, case.program)
        with open(self.path, 'wb') as output:
            self.process = subprocess.Popen(
                command, env=environment, cwd=directory,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def said(self):
        return self.path.read_text(errors='replace')

    def listens_on(self, port):
        """Waits for the TCP port: these programs exchange addresses over TCP, and a server prints
        nothing when it is ready."""
        socket = re.compile(rf':{port:04X} 0+:0000 0A')
        for table in ('tcp', 'tcp6'):
            try:
                if socket.search(pathlib.Path(f'/proc/{self.process.pid}/net/{table}').read_text()):
                    return True
            except OSError:
                pass
        return False

    def has_service(self):
        """… and where they exchange them through the connection manager, its name for a service
        that is waited for."""
        try:
            return '/listens/' in pathlib.Path(f'/proc/{self.process.pid}/net/unix').read_text()
        except OSError:
            return False

    def await_state(self, is_reached):
        deadline = time.monotonic() + self.seconds_max
        while not is_reached() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)

    def end(self):
        """Waits for the program; returns what is wrong with how it ended."""
        try:
            status = self.process.wait(self.seconds_max)
        except subprocess.TimeoutExpired:
            self.kill()
            return f'the {self.name} did not end in {self.seconds_max} s'
        if status == self.status or self.status is None:
            return ''
        if status < 0:
            return f'the {self.name} died of {signal.Signals(-status).name}'
        return f'the {self.name} exited with {status}'

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def run_alone(network, case, directory):
    bring_files(case.words, directory)
    names = ['program'] + [f'program {number}' for number in range(2, case.job_count + 1)]
    ends = [End(network, case, name, directory) for name in names]
    problems = [end.end() for end in ends]
    collect_files(directory, ends[0].path)
    return ends, next((problem for problem in problems if problem), '')


def run_watch(network, case, directory):
    """On a wire something happens to the interface, which the program must report."""
    end = End(network, case, 'program', directory)
    end.await_state(lambda: looks_well(case, end))
    problem = '' if end.process.poll() is None else 'it did not wait for events'
    if not problem and case.place in WIRES:
        address = 'fd00:9::1/64', 'dev', case.place
        ip('address', 'add', *address, 'nodad')
        end.await_state(lambda: 'event_type' in end.said())
        ip('address', 'delete', *address)
        problem = '' if 'event_type' in end.said() else 'it told of no event'
    end.kill()
    return [end], problem


def run_pair(network, case, directory, port):
    server = End(network, case, 'server', directory, ['-p', str(port)])
    server.await_state(lambda: server.listens_on(port) or server.has_service())
    client = End(network, case, 'client', directory, ['-p', str(port), case.server_name])
    problems = [client.end()]
    if problems[0]:
        server.kill()
    problems.append(server.end())
    return [server, client], problems[0] or problems[1]


def kill_server(server, client):
    """The client must notice that its server is killed, and end with an error."""
    client.await_state(lambda: re.search(UNDER_WAY, client.said(), re.MULTILINE))
    if client.process.poll() is not None:
        return 'the client ended too early'
    server.kill()
    client.status = None
    return client.end() or ('' if client.process.returncode else 'the client ended without an error')


def run_connecting(network, case, directory, port):
    server = End(network, case, 'server', directory, case.connecting_arguments('server', port))
    server.await_state(lambda: server.listens_on(port) or server.has_service() or 'joined' in server.said())
    client = End(network, case, 'client', directory, case.connecting_arguments('client', port))
    if case.is_server_killed:
        return [server, client], kill_server(server, client)
    problem = client.end()
    if problem or case.is_server_endless:
        server.kill()
    elif not problem:
        problem = server.end()
    return [server, client], problem


def looks_well(case, end):
    if case.status:
        return True  # its status says it all, and launchers may lose the last words of a program
    command = ' '.join(case.words)
    pattern = NOTICED if case.is_server_killed else next(
        pattern for program, pattern in SAYS.items() if re.match(program, command))
    return re.search(pattern.format(device=case.device), end.said(), re.MULTILINE)


def why_data_is_wrong(case, directory):
    """perftest's memory has first the bytes that it sends or has read, then those that its peer
    sees. It fills both ends with the same numbers, which differ from place to place."""
    size = case.size()
    halves = {}
    for end in ('server', 'client'):
        with open(directory / f'{end}.data', 'rb') as file:
            halves[end] = file.read(size), file.read(size)
    untouched = halves['server' if case.program.startswith('ib_read') else 'client']
    if not any(untouched[0]) or (not case.is_both_ways() and untouched[0] == untouched[1]):
        return 'the data tells nothing'
    if halves['server'][1] != halves['client'][0]:
        return 'other bytes came than were sent'
    if case.is_both_ways() and halves['client'][1] != halves['server'][0]:
        return 'other bytes came back than were sent'
    return ''


def has_misread_its_clock(said):
    """perftest compares the CPU's counter with the time; if it was interrupted meanwhile, it
    divides by zero."""
    return 'Correlation coefficient' in said and re.search(r'\b(inf|nan)\b', said)


def run_case(network, case, directory, port):
    """Returns what went wrong, '' if nothing, and all output. A busy machine does not fail a
    program that cannot measure there."""
    for _ in range(TRIES_WITH_A_CLOCK):
        problem, said = run_once(network, case, directory, port)
        if not has_misread_its_clock(said):
            break
    return problem, said


def self_checks(directory):
    """The adapters that compared what passed their port with their counters: how many agreed, and
    the first complaint of another, or ''."""
    log = directory / LOG
    lines = [line for line in log.read_text(errors='replace').splitlines() if 'self check: ' in line] if log.exists() else []
    complaints = [line for line in lines if ', all of them counted pid=' not in line]
    return len(lines) - len(complaints), complaints[0] if complaints else ''


def run_once(network, case, directory, port):
    if case.has_data:
        for end in ('server', 'client'):
            with open(directory / f'{end}.data', 'wb') as file:
                file.truncate(2 * case.size())
    if case.is_pair:
        ends, problem = run_pair(network, case, directory, port)
    elif case.is_connecting:
        ends, problem = run_connecting(network, case, directory, port)
    elif case.program == 'ibv_asyncwatch':
        ends, problem = run_watch(network, case, directory)
    else:
        ends, problem = run_alone(network, case, directory)
    said = ''.join(f'--- {end.name} ---\n{end.said()}' for end in ends)
    if not problem and not all(looks_well(case, end) for end in ends[-case.job_count:]):
        problem = 'it did not say what it does in the end'
    problem = problem or self_checks(directory)[1]
    if not problem and re.search(FOUND_WRONG, said):
        problem = 'a program found wrong data'
    if not problem and case.has_data:
        problem = why_data_is_wrong(case, directory)
    return problem, said
