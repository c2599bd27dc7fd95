/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What registered memory costs a program that has much of it, for bench/memory. The program is like
 * any other. Prints one number, of
 *	fork <MB>	milliseconds for fork(), the child's end and one store to each page
 *			of a region
 *	forked <MB>	KB of memory one second after that, in this process and in files
 *			that it holds
 *	unmapped <MB>	the same after munmap(), beside a second thread
 *	register <MB>	microseconds to register and deregister 64 KB, with that much
 *			resident
 */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define SMALL 65536u
#define ROUNDS 200u
#define REMOTE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct ibv_pd *pd;

static void require(int is_right, const char *what)
{
	if (is_right)
		return;
	perror(what);
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	require(list && *list, "no device");
	context = ibv_open_device(*list);
	require(context != NULL, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	require(pd != NULL, "ibv_alloc_pd");
	ibv_free_device_list(list);
}

static uint8_t *allocate(size_t length)
{
	uint8_t *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(memory != MAP_FAILED, "mmap");
	memset(memory, 1, length);
	return memory;
}

static struct ibv_mr *reg(void *memory, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, length, REMOTE);

	require(mr != NULL, "ibv_reg_mr");
	return mr;
}

/* Memory in files, whether they are mapped or not. */
static uint64_t kb_in_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	uint64_t kb = 0;

	while (folder && (entry = readdir(folder))) {
		char path[300], target[64] = { 0 };
		struct stat status;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, target, sizeof(target) - 1) > 0 &&
		    !strncmp(target, "/memfd:", 7) && !stat(path, &status))
			kb += (uint64_t)status.st_blocks / 2;
	}
	if (folder)
		closedir(folder);
	return kb;
}

static uint64_t kb_in_all(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long anonymous = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "RssAnon: %lu", &anonymous);
	if (file)
		fclose(file);
	return anonymous + kb_in_files();
}

static double fork_and_store(uint8_t *memory, size_t length)
{
	double begin = now_us();
	pid_t child = fork();

	if (!child)
		_exit(0);
	require(waitpid(child, NULL, 0) == child, "waitpid");
	for (size_t i = 0; i < length; i += PAGE)
		memory[i]++;
	return now_us() - begin;
}

static void *wait_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static double unmap_beside_a_thread(uint8_t *memory, size_t length, struct ibv_mr *mr)
{
	pthread_t thread;

	require(!pthread_create(&thread, NULL, wait_for_ever, NULL), "pthread_create");
	ibv_dereg_mr(mr);
	memset(memory, 2, length);
	munmap(memory, length);
	return (double)kb_in_all();
}

static double register_small(void)
{
	uint8_t *memory = allocate(SMALL);
	double begin = now_us();

	for (uint32_t i = 0; i < ROUNDS; i++)
		ibv_dereg_mr(reg(memory, SMALL));
	return (now_us() - begin) / ROUNDS;
}

int main(int argc, char **argv)
{
	size_t length = argc == 3 ? (size_t)atoi(argv[2]) << 20 : 0;
	uint8_t *memory;
	double result = 0;

	if (!length) {
		fprintf(stderr, "usage: registered fork|forked|unmapped|register <MB>\n");
		return 2;
	}
	open_device();
	memory = allocate(length);
	if (!strcmp(argv[1], "fork")) {
		reg(memory, length);
		result = fork_and_store(memory, length) / 1000;
	} else if (!strcmp(argv[1], "forked")) {
		reg(memory, length);
		fork_and_store(memory, length);
		sleep(1);
		result = (double)kb_in_all();
	} else if (!strcmp(argv[1], "unmapped")) {
		result = unmap_beside_a_thread(memory, length, reg(memory, length));
	} else {
		result = register_small();
	}
	printf("%.1f\n", result);
	return 0;
}
