// SPDX-License-Identifier: BSD-2-Clause
//
// An RC ping-pong in Rust: pingpong DEVICE [SERVER]. README.md describes the exchange. No crate is
// needed: the structures of verbs.h that the program uses are declared here. The verbs that are
// inline functions in C (post, poll) are pointers in the context.

use std::ffi::CStr;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::raw::{c_char, c_int, c_void};
use std::{env, mem, process, ptr, thread, time::Duration};

const PORT: u16 = 18620;
const GID_INDEX: u8 = 1;
const ROUNDS: u32 = 1000;
const SIZE: usize = 64;
const PSN: u32 = 300;

mod verbs {
    use super::*;

    #[repr(C)]
    pub struct Context {
        pub device: *mut c_void,
        pub ops: Ops,
    }

    // The table has 32 pointers; those between the ones that are used are only counted.
    #[repr(C)]
    pub struct Ops {
        unused_0: [*mut c_void; 11],
        pub poll_cq: extern "C" fn(*mut Cq, c_int, *mut Completion) -> c_int,
        unused_1: [*mut c_void; 13],
        pub post_send: extern "C" fn(*mut Qp, *mut SendRequest, *mut *mut SendRequest) -> c_int,
        pub post_recv: extern "C" fn(*mut Qp, *mut RecvRequest, *mut *mut RecvRequest) -> c_int,
    }

    #[repr(C)]
    pub struct Cq {
        pub context: *mut Context,
    }

    #[repr(C)]
    pub struct Qp {
        pub context: *mut Context,
        unused: [*mut c_void; 5],
        handle: u32,
        pub number: u32,
    }

    #[repr(C)]
    pub struct Mr {
        unused: [*mut c_void; 3],
        length: usize,
        handle: u32,
        pub lkey: u32,
        rkey: u32,
    }

    #[repr(C)]
    pub struct Sge {
        pub address: u64,
        pub length: u32,
        pub lkey: u32,
    }

    #[repr(C)]
    pub struct SendRequest {
        pub id: u64,
        pub next: *mut SendRequest,
        pub sges: *mut Sge,
        pub sge_count: c_int,
        pub opcode: u32,
        pub flags: u32,
        pub imm: u32,
        pub rest: [u64; 11], // the operands of operations other than SEND
    }

    #[repr(C)]
    pub struct RecvRequest {
        pub id: u64,
        pub next: *mut RecvRequest,
        pub sges: *mut Sge,
        pub sge_count: c_int,
    }

    #[repr(C)]
    pub struct Completion {
        pub id: u64,
        pub status: u32,
        pub opcode: u32,
        pub rest: [u32; 8],
    }

    #[repr(C)]
    pub struct Capacities {
        pub send_wr: u32,
        pub recv_wr: u32,
        pub send_sge: u32,
        pub recv_sge: u32,
        pub inline: u32,
    }

    #[repr(C)]
    pub struct QpInit {
        pub owner: *mut c_void,
        pub send_cq: *mut Cq,
        pub recv_cq: *mut Cq,
        pub srq: *mut c_void,
        pub cap: Capacities,
        pub kind: u32,
        pub signal_all: c_int,
    }

    #[repr(C)]
    pub struct Address {
        pub gid: [u8; 16],
        pub flow_label: u32,
        pub gid_index: u8,
        pub hop_limit: u8,
        pub traffic_class: u8,
        pub lid: u16,
        pub sl: u8,
        pub path_bits: u8,
        pub rate: u8,
        pub is_global: u8,
        pub port: u8,
    }

    #[repr(C)]
    pub struct QpAttr {
        pub state: u32,
        pub current_state: u32,
        pub path_mtu: u32,
        pub migration: u32,
        pub qkey: u32,
        pub rq_psn: u32,
        pub sq_psn: u32,
        pub destination: u32,
        pub access: u32,
        pub cap: Capacities,
        pub address: Address,
        pub alternate: Address,
        pub pkey_index: u16,
        pub alternate_pkey_index: u16,
        pub notify: u8,
        pub draining: u8,
        pub reads_out: u8,
        pub reads_in: u8,
        pub min_rnr_timer: u8,
        pub port: u8,
        pub timeout: u8,
        pub retries: u8,
        pub rnr_retries: u8,
        pub alternate_port: u8,
        pub alternate_timeout: u8,
        pub rate_limit: u32,
    }

    pub const QPT_RC: u32 = 2;
    pub const WR_SEND: u32 = 2;
    pub const ACCESS_LOCAL_WRITE: c_int = 1;
    pub const MTU_1024: u32 = 3;
    pub const INIT: u32 = 1;
    pub const RTR: u32 = 2;
    pub const RTS: u32 = 3;
    pub const TO_INIT: c_int = 1 | 1 << 3 | 1 << 4 | 1 << 5; // state, access, pkey, port
    pub const TO_RTR: c_int = 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20;
    pub const TO_RTS: c_int = 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16;

    #[link(name = "ibverbs")]
    extern "C" {
        pub fn ibv_get_device_list(count: *mut c_int) -> *mut *mut c_void;
        pub fn ibv_free_device_list(list: *mut *mut c_void);
        pub fn ibv_get_device_name(device: *mut c_void) -> *const c_char;
        pub fn ibv_open_device(device: *mut c_void) -> *mut Context;
        pub fn ibv_close_device(context: *mut Context) -> c_int;
        pub fn ibv_query_gid(context: *mut Context, port: u8, index: c_int, gid: *mut [u8; 16]) -> c_int;
        pub fn ibv_alloc_pd(context: *mut Context) -> *mut c_void;
        pub fn ibv_dealloc_pd(pd: *mut c_void) -> c_int;
        pub fn ibv_reg_mr(pd: *mut c_void, memory: *mut c_void, length: usize, access: c_int) -> *mut Mr;
        pub fn ibv_dereg_mr(mr: *mut Mr) -> c_int;
        pub fn ibv_create_cq(c: *mut Context, depth: c_int, owner: *mut c_void, channel: *mut c_void,
                             vector: c_int) -> *mut Cq;
        pub fn ibv_destroy_cq(cq: *mut Cq) -> c_int;
        pub fn ibv_create_qp(pd: *mut c_void, init: *mut QpInit) -> *mut Qp;
        pub fn ibv_modify_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int) -> c_int;
        pub fn ibv_destroy_qp(qp: *mut Qp) -> c_int;
    }
}

fn fail(what: &str) -> ! {
    eprintln!("pingpong: {what}");
    process::exit(1)
}

fn must<T>(made: *mut T, what: &str) -> *mut T {
    if made.is_null() {
        fail(what)
    }
    made
}

fn check(error: c_int, what: &str) {
    if error != 0 {
        fail(what)
    }
}

/// A few lines over TCP.
struct Meeting(BufReader<TcpStream>);

impl Meeting {
    fn new(server: Option<&str>) -> Meeting {
        let stream = match server {
            None => TcpListener::bind(("0.0.0.0", PORT)).and_then(|l| l.accept()).map(|found| found.0),
            Some(address) => (0..500)
                .find_map(|_| {
                    TcpStream::connect((address, PORT))
                        .map_err(|_| thread::sleep(Duration::from_millis(10)))
                        .ok()
                })
                .ok_or_else(|| fail("no server")),
        };
        Meeting(BufReader::new(stream.unwrap_or_else(|e| fail(&e.to_string()))))
    }

    fn swap(&mut self, line: &str) -> String {
        let mut answer = String::new();
        if self.0.get_mut().write_all(format!("{line}\n").as_bytes()).is_err() || self.0.read_line(&mut answer).is_err() {
            fail("the partner is gone");
        }
        answer
    }
}

/// Registered memory stays where it is: a Box does not move its content.
#[repr(C)]
struct Memory {
    input: [u8; SIZE],
    output: [u8; SIZE],
}

struct End {
    context: *mut verbs::Context,
    pd: *mut c_void,
    mr: *mut verbs::Mr,
    cq: *mut verbs::Cq,
    qp: *mut verbs::Qp,
    memory: *mut Memory,
}

impl End {
    fn new(name: &str) -> End {
        unsafe {
            let list = must(verbs::ibv_get_device_list(ptr::null_mut()), "no devices");
            let device = (0..)
                .map(|i| *list.add(i))
                .take_while(|d| !d.is_null())
                .find(|d| CStr::from_ptr(verbs::ibv_get_device_name(*d)).to_bytes() == name.as_bytes())
                .unwrap_or_else(|| fail("no such device"));
            let context = must(verbs::ibv_open_device(device), "ibv_open_device");
            verbs::ibv_free_device_list(list);
            let pd = must(verbs::ibv_alloc_pd(context), "ibv_alloc_pd");
            let memory = Box::into_raw(Box::new(Memory { input: [0; SIZE], output: [0; SIZE] }));
            let mr = must(
                verbs::ibv_reg_mr(pd, memory.cast(), mem::size_of::<Memory>(), verbs::ACCESS_LOCAL_WRITE),
                "ibv_reg_mr",
            );
            let cq = must(verbs::ibv_create_cq(context, 16, ptr::null_mut(), ptr::null_mut(), 0), "ibv_create_cq");
            let mut init: verbs::QpInit = mem::zeroed();
            init.send_cq = cq;
            init.recv_cq = cq;
            init.cap = verbs::Capacities { send_wr: 4, recv_wr: 4, send_sge: 1, recv_sge: 1, inline: 0 };
            init.kind = verbs::QPT_RC;
            init.signal_all = 1;
            let qp = must(verbs::ibv_create_qp(pd, &mut init), "ibv_create_qp");
            let mut attr: verbs::QpAttr = mem::zeroed();
            attr.state = verbs::INIT;
            attr.port = 1;
            check(verbs::ibv_modify_qp(qp, &mut attr, verbs::TO_INIT), "INIT");
            End { context, pd, mr, cq, qp, memory }
        }
    }

    fn connect(&self, meeting: &mut Meeting) {
        unsafe {
            let mut gid = [0u8; 16];
            check(verbs::ibv_query_gid(self.context, 1, GID_INDEX.into(), &mut gid), "ibv_query_gid");
            let digits: String = gid.iter().map(|byte| format!("{byte:02x}")).collect();
            let theirs = meeting.swap(&format!("{} {PSN} {digits}", (*self.qp).number));
            let words: Vec<&str> = theirs.split_whitespace().collect();
            if words.len() != 3 || words[2].len() != 32 {
                fail("the partner said something else");
            }
            let number = |word: &str| word.parse().unwrap_or_else(|_| fail("that is no number"));
            let mut attr: verbs::QpAttr = mem::zeroed();
            for (i, byte) in attr.address.gid.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&words[2][2 * i..2 * i + 2], 16).unwrap_or_else(|_| fail("that is no GID"));
            }
            attr.state = verbs::RTR;
            attr.path_mtu = verbs::MTU_1024;
            attr.destination = number(words[0]);
            attr.rq_psn = number(words[1]);
            attr.min_rnr_timer = 12;
            attr.address.is_global = 1;
            attr.address.port = 1;
            attr.address.gid_index = GID_INDEX;
            attr.address.hop_limit = 64;
            check(verbs::ibv_modify_qp(self.qp, &mut attr, verbs::TO_RTR), "RTR");
            attr.state = verbs::RTS;
            attr.sq_psn = PSN;
            attr.timeout = 14;
            attr.retries = 7;
            attr.rnr_retries = 7;
            check(verbs::ibv_modify_qp(self.qp, &mut attr, verbs::TO_RTS), "RTS");
        }
        meeting.swap("ready");
    }

    fn sge(&self, memory: *const u8) -> verbs::Sge {
        verbs::Sge { address: memory as u64, length: SIZE as u32, lkey: unsafe { (*self.mr).lkey } }
    }

    fn post_receive(&self) {
        unsafe {
            let mut sge = self.sge(ptr::addr_of!((*self.memory).input).cast());
            let mut request = verbs::RecvRequest { id: 0, next: ptr::null_mut(), sges: &mut sge, sge_count: 1 };
            let mut bad = ptr::null_mut();
            check(((*self.context).ops.post_recv)(self.qp, &mut request, &mut bad), "ibv_post_recv");
        }
    }

    fn send(&self, value: u8) {
        unsafe {
            (*self.memory).output = [value; SIZE];
            let mut sge = self.sge(ptr::addr_of!((*self.memory).output).cast());
            let mut request: verbs::SendRequest = mem::zeroed();
            let mut bad = ptr::null_mut();
            request.sges = &mut sge;
            request.sge_count = 1;
            request.opcode = verbs::WR_SEND;
            check(((*self.context).ops.post_send)(self.qp, &mut request, &mut bad), "ibv_post_send");
        }
    }

    fn wait(&self, count: u32) {
        for _ in 0..count {
            unsafe {
                let mut completion: verbs::Completion = mem::zeroed();
                let found = loop {
                    let found = ((*self.context).ops.poll_cq)(self.cq, 1, &mut completion);
                    if found != 0 {
                        break found;
                    }
                };
                if found < 0 || completion.status != 0 {
                    fail("a completion with an error");
                }
            }
        }
    }

    fn check(&self, value: u8) {
        let input = unsafe { ptr::read_volatile(ptr::addr_of!((*self.memory).input)) };
        if input != [value; SIZE] {
            fail("wrong data");
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        unsafe {
            verbs::ibv_destroy_qp(self.qp);
            verbs::ibv_destroy_cq(self.cq);
            verbs::ibv_dereg_mr(self.mr);
            verbs::ibv_dealloc_pd(self.pd);
            verbs::ibv_close_device(self.context);
            drop(Box::from_raw(self.memory));
        }
    }
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if arguments.len() < 2 {
        fail("usage: pingpong DEVICE [SERVER]");
    }
    let server = arguments.get(2).map(String::as_str);
    let end = End::new(&arguments[1]);

    end.post_receive();
    let mut meeting = Meeting::new(server);
    end.connect(&mut meeting);
    for number in 0..ROUNDS {
        let (ping, pong) = ((number & 127) as u8, ((number + 1) & 127) as u8);
        if server.is_some() {
            end.send(ping);
            end.wait(2);
            end.check(pong);
            end.post_receive();
        } else {
            end.wait(1);
            end.check(ping);
            end.post_receive();
            end.send(pong);
            end.wait(1);
        }
    }
    meeting.swap("done");
    println!("{ROUNDS} round trips of {SIZE} bytes, all right");
}
