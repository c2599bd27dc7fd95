// SPDX-License-Identifier: BSD-2-Clause
//
// An RC ping-pong in C++: pingpong DEVICE [SERVER]. README.md describes the exchange. The seven
// steps of every verbs program are numbered below. A thread of its own waits for completions.

#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

namespace {

constexpr uint16_t kPort = 18620;
constexpr int kGidIndex = 1, kRounds = 1000;
constexpr uint32_t kPsn = 300, kSize = 64;

[[noreturn]] void fail(const char *what)
{
	std::fprintf(stderr, "pingpong: %s\n", what);
	std::exit(1);
}

template <typename T> T *must(T *made, const char *what)
{
	if (!made)
		fail(what);
	return made;
}

void must(int error, const char *what)
{
	if (error)
		fail(what);
}

// --- a few lines over TCP ---

class Meeting {
public:
	explicit Meeting(const char *server)
	{
		sockaddr_in address{};
		int one = 1;

		address.sin_family = AF_INET;
		address.sin_port = htons(kPort);
		fd_ = socket(AF_INET, SOCK_STREAM, 0);
		if (server) {
			inet_pton(AF_INET, server, &address.sin_addr);
			for (int tries = 0; connect(fd_, (sockaddr *)&address, sizeof(address)); tries++) {
				if (tries == 500)
					fail("no server");
				usleep(10000);
			}
		} else {
			int listener = fd_;

			setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
			must(bind(listener, (sockaddr *)&address, sizeof(address)), "bind");
			must(listen(listener, 1), "listen");
			fd_ = accept(listener, nullptr, nullptr);
			close(listener);
		}
	}
	~Meeting() { close(fd_); }

	std::string swap(const std::string &line)
	{
		std::string answer;
		char next;

		if (write(fd_, (line + "\n").data(), line.size() + 1) < 0)
			fail("the partner is gone");
		while (read(fd_, &next, 1) == 1 && next != '\n')
			answer += next;
		return answer;
	}

private:
	int fd_;
};

std::string hex(const union ibv_gid &gid)
{
	std::string text;
	char digits[3];

	for (uint8_t byte : gid.raw) {
		std::snprintf(digits, sizeof(digits), "%02x", byte);
		text += digits;
	}
	return text;
}

// --- verbs ---

class End {
public:
	explicit End(const char *device)
	{
		// 1. Open the device.
		ibv_device **list = must(ibv_get_device_list(nullptr), "no devices");
		ibv_device **found = list;

		while (*found && std::strcmp(ibv_get_device_name(*found), device))
			found++;
		context_ = must(*found ? ibv_open_device(*found) : nullptr, "no such device");
		ibv_free_device_list(list);
		// 2. A protection domain, and 3. registered memory in it.
		pd_ = must(ibv_alloc_pd(context_), "ibv_alloc_pd");
		mr_ = must(ibv_reg_mr(pd_, &memory_, sizeof(memory_), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
		// 4. A completion queue that reports to a channel.
		channel_ = must(ibv_create_comp_channel(context_), "ibv_create_comp_channel");
		cq_ = must(ibv_create_cq(context_, 16, nullptr, channel_, 0), "ibv_create_cq");
		must(ibv_req_notify_cq(cq_, 0), "ibv_req_notify_cq");
		// 5. A queue pair.
		ibv_qp_init_attr init{};
		init.send_cq = init.recv_cq = cq_;
		init.cap.max_send_wr = init.cap.max_recv_wr = 4;
		init.cap.max_send_sge = init.cap.max_recv_sge = 1;
		init.qp_type = IBV_QPT_RC;
		init.sq_sig_all = 1;
		qp_ = must(ibv_create_qp(pd_, &init), "ibv_create_qp");
		ibv_qp_attr attr{};
		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		must(ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		     "INIT");
		completer_ = std::thread(&End::take_completions, this);
	}

	~End()
	{
		is_ending_ = true;
		post_receive(); // flushed by ERR: its completion wakes the thread
		ibv_qp_attr attr{};
		attr.qp_state = IBV_QPS_ERR;
		must(ibv_modify_qp(qp_, &attr, IBV_QP_STATE), "ERR");
		completer_.join();
		ibv_destroy_qp(qp_);
		ibv_destroy_cq(cq_);
		ibv_destroy_comp_channel(channel_);
		ibv_dereg_mr(mr_);
		ibv_dealloc_pd(pd_);
		ibv_close_device(context_);
	}

	// 6. Exchange numbers with the partner, and move the queue pair to RTR and RTS.
	void connect(Meeting &meeting)
	{
		union ibv_gid gid;
		unsigned qpn, psn;
		char digits[33] = "";

		must(ibv_query_gid(context_, 1, kGidIndex, &gid), "ibv_query_gid");
		std::string theirs = meeting.swap(std::to_string(qp_->qp_num) + " " + std::to_string(kPsn) + " " + hex(gid));
		if (std::sscanf(theirs.c_str(), "%u %u %32s", &qpn, &psn, digits) != 3)
			fail("the partner said something else");
		ibv_qp_attr attr{};
		for (int i = 0; i < 16; i++)
			attr.ah_attr.grh.dgid.raw[i] = (uint8_t)std::stoul(std::string(digits + 2 * i, 2), nullptr, 16);
		attr.qp_state = IBV_QPS_RTR;
		attr.path_mtu = IBV_MTU_1024;
		attr.dest_qp_num = qpn;
		attr.rq_psn = psn;
		attr.min_rnr_timer = 12;
		attr.ah_attr.is_global = 1;
		attr.ah_attr.port_num = 1;
		attr.ah_attr.grh.sgid_index = kGidIndex;
		attr.ah_attr.grh.hop_limit = 64;
		must(ibv_modify_qp(qp_, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		     "RTR");
		attr.qp_state = IBV_QPS_RTS;
		attr.sq_psn = kPsn;
		attr.timeout = 14;
		attr.retry_cnt = attr.rnr_retry = 7;
		must(ibv_modify_qp(qp_, &attr,
				   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		     "RTS");
		meeting.swap("ready");
	}

	// 7. Post, and wait for completions.
	void post_receive()
	{
		ibv_sge sge{ (uintptr_t)memory_.in.data(), kSize, mr_->lkey };
		ibv_recv_wr request{}, *bad;

		request.sg_list = &sge;
		request.num_sge = 1;
		must(ibv_post_recv(qp_, &request, &bad), "ibv_post_recv");
	}

	void send(uint8_t value)
	{
		ibv_sge sge{ (uintptr_t)memory_.out.data(), kSize, mr_->lkey };
		ibv_send_wr request{}, *bad;

		memory_.out.fill(value);
		request.sg_list = &sge;
		request.num_sge = 1;
		request.opcode = IBV_WR_SEND;
		must(ibv_post_send(qp_, &request, &bad), "ibv_post_send");
	}

	void wait(int count)
	{
		std::unique_lock<std::mutex> lock(mutex_);

		arrived_.wait(lock, [&] { return completed_ >= count; });
		completed_ -= count;
	}

	void check(uint8_t value)
	{
		if (std::any_of(memory_.in.begin(), memory_.in.end(), [&](uint8_t byte) { return byte != value; }))
			fail("wrong data");
	}

private:
	// Arms the queue before it looks, so that no completion comes unnoticed in between.
	void take_completions()
	{
		for (;;) {
			ibv_cq *cq;
			void *owner;
			ibv_wc completion;

			must(ibv_get_cq_event(channel_, &cq, &owner), "ibv_get_cq_event");
			ibv_ack_cq_events(cq, 1);
			must(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
			while (ibv_poll_cq(cq, 1, &completion) == 1) {
				if (is_ending_)
					return;
				if (completion.status != IBV_WC_SUCCESS)
					fail(ibv_wc_status_str(completion.status));
				std::lock_guard<std::mutex> lock(mutex_);
				completed_++;
				arrived_.notify_one();
			}
		}
	}

	struct {
		std::array<uint8_t, kSize> in, out;
	} memory_{};
	ibv_context *context_;
	ibv_pd *pd_;
	ibv_mr *mr_;
	ibv_comp_channel *channel_;
	ibv_cq *cq_;
	ibv_qp *qp_;
	std::thread completer_;
	std::mutex mutex_;
	std::condition_variable arrived_;
	int completed_ = 0;
	std::atomic<bool> is_ending_{ false };
};

} // namespace

int main(int argc, char **argv)
{
	if (argc < 2)
		fail("usage: pingpong DEVICE [SERVER]");
	const char *server = argc > 2 ? argv[2] : nullptr;
	End end(argv[1]);

	end.post_receive();
	Meeting meeting(server);
	end.connect(meeting);
	for (int number = 0; number < kRounds; number++) {
		uint8_t ping = number & 127, pong = (number + 1) & 127;

		if (server) {
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
	std::printf("%d round trips of %u bytes, all right\n", kRounds, kSize);
}
