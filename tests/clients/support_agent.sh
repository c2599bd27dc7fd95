#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The script that mpirun calls instead of ssh, with a host's name and a command: the other host is
# the other namespace, and the runner passes how to enter it (VB_ENTER). MPICH's mpirun passes an
# option of ssh in front.

set -eu
[ "$1" != -x ] || shift
shift
exec $VB_ENTER sh -c "$*"
