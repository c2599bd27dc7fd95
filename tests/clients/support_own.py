# SPDX-License-Identifier: BSD-2-Clause
"""Programs of ours, which the list names by folder and file ("mpi/exchange"): building them. And the
files that programs of the distribution read and write where they run."""

import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# How the programs of a folder are compiled, for the program that starts them.
COMPILERS = {
    'mpi': lambda launcher: [launcher.replace('mpirun', 'mpicc'), '-w'],
    'shmem': lambda launcher: ['oshcc'],
    'ucx': lambda launcher: ['gcc', '-Wl,--no-as-needed', '-lucp', '-lucs'],
}

# Programs of the distribution that a launcher starts, and the files that they read.
LAUNCHED = {'NPopenmpi': [], 'NPmpich2': [], 'hpcc': ['mpi/hpccinf.txt']}
OUTPUT_FILES = ['hpccoutf.txt']


def is_own(word):
    return '/' in word and (HERE / f'{word}.c').is_file()


def compiler_of(word, launcher):
    return COMPILERS[word.split('/')[0]](launcher)


def tools_of(words):
    """What must be installed for this command line."""
    launcher = words[0]
    compilers = [compiler_of(word, launcher)[0] for word in words if is_own(word)]
    return [word for word in words[:1] if not is_own(word)] + compilers + [
        word for word in words if word in LAUNCHED]


class Workshop:
    """A folder for programs of ours. Each is compiled when it is first needed."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.built = {}

    def path_of(self, word, launcher):
        compiler = compiler_of(word, launcher)
        key = word, compiler[0]
        if key not in self.built:
            path = pathlib.Path(self.folder.name) / f'{word.replace("/", "-")}-{compiler[0]}'
            subprocess.run(compiler + ['-O2', '-o', path, HERE / f'{word}.c'], check=True)
            self.built[key] = str(path)
        return self.built[key]

    def place(self, words, launcher):
        """The words of a command line, with the paths of programs of ours."""
        return [self.path_of(word, launcher) if is_own(word) else word for word in words]


def bring_files(words, directory):
    for word in words:
        for name in LAUNCHED.get(word, []):
            shutil.copy(HERE / name, directory)


def collect_files(directory, path):
    """Appends what programs wrote into files to the file with their output."""
    for name in OUTPUT_FILES:
        if (directory / name).exists():
            with open(path, 'a', encoding='utf-8') as output:
                output.write((directory / name).read_text(errors='replace'))
