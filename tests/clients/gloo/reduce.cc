// SPDX-License-Identifier: BSD-2-Clause
//
// A program for gloo, which tests/clients/gloo.sh builds and runs: one process for each rank. They
// meet by files in a folder, reduce vectors of several sizes over the ibverbs transport, and compare
// each sum with the one that they compute themselves.
//
// Nothing is destroyed before a pause at the end. gloo's calls return when the last message has
// arrived, not when the last one that was sent is completed. A buffer that is destroyed before its
// completion aborts the process ("Destructing buffer expecting completions"), and the completion of
// a message may come after the answer to it, with any adapter. gloo has no call that waits for it.

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Elements = std::vector<uint64_t>;

uint64_t element_of(int rank, size_t place, int round)
{
	return (rank + 1) * 1000003u + place * 31 + round;
}

void fill(Elements &elements, int rank, int round)
{
	for (size_t i = 0; i < elements.size(); i++)
		elements[i] = element_of(rank, i, round);
}

bool is_sum(const Elements &elements, int ranks, int round)
{
	for (size_t i = 0; i < elements.size(); i++) {
		uint64_t sum = 0;
		for (int rank = 0; rank < ranks; rank++)
			sum += element_of(rank, i, round);
		if (elements[i] != sum)
			return false;
	}
	return true;
}

// An algorithm with its elements. It lives until the program has paused.
template <typename Algorithm>
struct Reduction {
	Elements elements;
	Algorithm algorithm;

	Reduction(const std::shared_ptr<gloo::Context> &context, size_t count)
		: elements(count), algorithm(context, {elements.data()}, static_cast<int>(count))
	{
	}
};

template <typename Algorithm>
bool reduce(const std::shared_ptr<gloo::Context> &context, size_t count, std::vector<std::shared_ptr<void>> &kept)
{
	auto reduction = std::make_shared<Reduction<Algorithm>>(context, count);

	kept.push_back(reduction);
	for (int round = 0; round < 5; round++) {
		fill(reduction->elements, context->rank, round);
		reduction->algorithm.run();
		if (!is_sum(reduction->elements, context->size, round)) {
			std::fprintf(stderr, "rank %d: wrong sum of %zu elements\n", context->rank, count);
			return false;
		}
	}
	return true;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 6) {
		std::fprintf(stderr, "usage: reduce <rank> <ranks> <folder> <device> <pause before the end in ms>\n");
		return 2;
	}
	int rank = std::atoi(argv[1]), ranks = std::atoi(argv[2]);
	gloo::transport::ibverbs::attr attr{};
	attr.name = argv[4];
	attr.port = 1;
	attr.index = 1;
	bool is_right = true;
	{
		auto device = gloo::transport::ibverbs::CreateDevice(attr);
		gloo::rendezvous::FileStore store(argv[3]);
		auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
		context->connectFullMesh(store, device);
		std::vector<std::shared_ptr<void>> kept;
		for (size_t count : {1u, 1000u, 100000u, 500000u}) {
			is_right &= reduce<gloo::AllreduceRingChunked<uint64_t>>(context, count, kept);
			is_right &= reduce<gloo::AllreduceHalvingDoubling<uint64_t>>(context, count, kept);
		}
		auto barrier = std::make_shared<gloo::BarrierAllToAll>(context);
		kept.push_back(barrier);
		barrier->run();
		std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[5])));
	}
	std::printf("rank %d: %s\n", rank, is_right ? "all sums are right" : "wrong sums");
	return !is_right;
}
