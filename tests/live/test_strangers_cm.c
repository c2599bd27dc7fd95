/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections while another user of the host holds the names of services. And the GUID of the host,
 * which only the host's own processes know.
 */
#include "support_manager.h"
#include "support_stranger.h"

#include "namespace.h"
#include "support_link.h"
#include "support_verbs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HERE "10.0.0.1"
#define PORT 7471

enum { PROCESSES = 20, ROUNDS = 3 };

static struct manager manager;

/*
 * More specific than any address, so that it is asked for first; and the name that the server
 * wants.
 */
static const char *const special[] = {
	"verbatim/0/listens/1061d2f/1/00000000000000000000ffff0a000001",
	NULL,
};
static const char *const any[] = {
	"verbatim/0/listens/1061d2f/1/any",
	"verbatim/0/listens/1061d2f/2/any",
	"verbatim/0/listened/1061d2f/1/any",
	"verbatim/0/listened/1061d2f/2/any",
	NULL,
};

static void enter_host(void)
{
	namespace_enter();
	need_another_user();
	namespace_add_dummy("d0");
	ip("link set lo up");
	ip("address add " HERE "/24 dev d0");
}

/* --- services --------------------------------------------------------------------------------- */

/* Listens when the test asks for it, and takes one connection, several times. */
static void serve(int line)
{
	struct vb_cm_connection *connection;
	struct service service;

	manager_open(&manager);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		hear_letter(line, 'g');
		manager_listen(&manager, PORT, NULL, &service);
		say_letter(line, 'l');
		connection = manager_take_connection(&manager);
		manager_expect(&manager, VB_CM_DISCONNECTED);
		manager_disconnect(&manager, connection);
		manager_expect(&manager, VB_CM_TIMEWAIT_EXIT);
		manager_destroy(&manager, connection);
		manager_unlisten(&manager, &service);
		say_letter(line, 'u');
	}
	manager_close(&manager);
}

static void connect_once(void)
{
	struct vb_cm_connection *connection = manager_make_connection(&manager, HERE, HERE, PORT);

	manager_disconnect(&manager, connection);
	EXPECT(!manager_expect(&manager, VB_CM_DISCONNECTED).is_timeout);
	manager_destroy(&manager, connection);
}

/*
 * The process of another user takes the names before the rounds, and between them if the names are
 * free.
 */
static void connect_by(const char *const *names, int type, bool is_before)
{
	struct hold hold = { type, false, names, 0, 1 };
	struct spoils *spoils = NULL;
	struct party server;
	pid_t stranger = 0;

	enter_host();
	if (is_before)
		stranger = stranger_start(&hold, &spoils);
	server = party_start(serve);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		say_letter(server.line, 'g');
		hear_letter(server.line, 'l');
		if (!i)
			manager_open(&manager);
		connect_once();
		hear_letter(server.line, 'u');
		if (!stranger)
			stranger = stranger_start(&hold, &spoils);
	}
	EXPECT(spoils->name_count > 0);
	EXPECT_EQ(spoils->messages, 0);
	manager_close(&manager);
	party_join(&server);
	stranger_end(stranger);
}

TEST(a_stranger_that_holds_a_more_special_name_of_a_service_gets_no_requests)
{
	connect_by(special, SOCK_SEQPACKET, true);
}

TEST(a_stranger_that_holds_such_a_name_by_a_datagram_socket_gets_no_requests)
{
	connect_by(special, SOCK_DGRAM, true);
}

TEST(a_service_whose_name_a_stranger_holds_is_found)
{
	connect_by(any, SOCK_SEQPACKET, true);
}

TEST(a_service_whose_name_a_stranger_takes_between_two_listeners_is_found)
{
	connect_by(any, SOCK_SEQPACKET, false);
}

TEST(a_service_whose_name_a_datagram_socket_holds_is_found)
{
	connect_by(any, SOCK_DGRAM, true);
}

/* --- the GUID --------------------------------------------------------------------------------- */

static void tell_place(int line)
{
	manager_open(&manager);
	EXPECT_EQ(write(line, &manager.place.ca_guid, sizeof(manager.place.ca_guid)),
		  (ssize_t)sizeof(manager.place.ca_guid));
	hear_letter(line, 'e');
	manager_close(&manager);
}

static uint64_t hear_guid(const struct party *party)
{
	uint64_t guid = 0;

	EXPECT_EQ(recv(party->line, &guid, sizeof(guid), MSG_WAITALL), (ssize_t)sizeof(guid));
	return guid;
}

TEST(processes_that_open_a_device_at_once_have_one_guid)
{
	struct party parties[PROCESSES];
	uint64_t guid;

	namespace_enter();
	namespace_add_dummy("d0");
	ip("address add " HERE "/24 dev d0");
	for (uint32_t i = 0; i < PROCESSES; i++)
		parties[i] = party_start(tell_place);
	guid = hear_guid(&parties[0]);
	EXPECT(guid);
	for (uint32_t i = 1; i < PROCESSES; i++)
		EXPECT_EQ(hear_guid(&parties[i]), guid);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		say_letter(parties[i].line, 'e');
		party_join(&parties[i]);
	}
}

/* Kernel, network namespace and user are the same. */
TEST(the_guid_of_a_host_cannot_be_told_from_what_everybody_knows)
{
	uint64_t guids[2];

	namespace_enter();
	namespace_add_dummy("d0");
	ip("address add " HERE "/24 dev d0");
	for (uint32_t i = 0; i < 2; i++) {
		struct party party = party_start(tell_place);

		guids[i] = hear_guid(&party);
		say_letter(party.line, 'e');
		party_join(&party);
	}
	EXPECT(guids[0] && guids[0] != guids[1]);
}

/* No process waits for one that is stopped, whichever process stopped it. */
TEST(a_process_that_finds_only_stopped_processes_makes_a_guid_and_logs_it)
{
	struct party party;
	uint64_t guid;

	namespace_enter();
	namespace_add_dummy("d0");
	ip("address add " HERE "/24 dev d0");
	program_keep_log("warn");
	party = party_start(tell_place);
	guid = hear_guid(&party);
	EXPECT_EQ(kill(party.pid, SIGSTOP), 0);
	EXPECT_EQ(waitid(P_PID, (id_t)party.pid, &(siginfo_t){ 0 }, WSTOPPED | WNOWAIT), 0);
	manager_open(&manager);
	EXPECT(manager.place.ca_guid && manager.place.ca_guid != guid);
	EXPECT_EQ(manager.place.id_prefix, 1);
	program_expect_in_log("warn: none of this user's programs on this host tells its GUID");
	manager_close(&manager);
	EXPECT_EQ(kill(party.pid, SIGCONT), 0);
	say_letter(party.line, 'e');
	party_join(&party);
}
