/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal of `verbatim top`: a table of QPs, or one QP. ncurses draws it. The selection stays
 * with its QP when the order changes.
 */
#include "top.h"

#include <stdio.h>

#ifdef VB_HAS_NCURSES

#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEY_ESCAPE 27
#define FIRST_ROW 3 /* of the table's lines */

struct screen {
	struct top_options *options;
	struct top_model model;
	uint32_t *shown; /* indices of the QPs that match the filter */
	uint32_t shown_count;
	uint32_t selected; /* among the shown ones */
	uint32_t first; /* of the shown ones on the screen */
	pid_t chosen_pid; /* the selected QP … */
	uint32_t chosen_qpn; /* … stays selected */
	bool is_open; /* one QP is shown */
	bool is_typing; /* a filter */
	char typed[TOP_FILTER_MAX];
};

/* --- what is shown --- */

static void choose_shown(struct screen *screen)
{
	struct top_model *model = &screen->model;
	static uint32_t none;

	top_model_sort(model, screen->options->order);
	if (screen->shown != &none)
		free(screen->shown);
	screen->shown = calloc(model->count + 1, sizeof(*screen->shown));
	screen->shown_count = 0;
	if (!screen->shown) {
		screen->shown = &none;
		return;
	}
	for (uint32_t i = 0; i < model->count; i++)
		if (top_format_matches(model, &model->qps[i], screen->options->filter))
			screen->shown[screen->shown_count++] = i;
	for (uint32_t i = 0; i < screen->shown_count; i++) {
		const struct top_qp *qp = &model->qps[screen->shown[i]];

		if (qp->pid == screen->chosen_pid && qp->row.qpn == screen->chosen_qpn)
			screen->selected = i;
	}
	if (screen->selected >= screen->shown_count)
		screen->selected = screen->shown_count ? screen->shown_count - 1 : 0;
}

static const struct top_qp *selected_qp(const struct screen *screen)
{
	return screen->shown_count ? &screen->model.qps[screen->shown[screen->selected]] : NULL;
}

static void select_row(struct screen *screen, uint32_t row)
{
	const struct top_qp *qp;

	screen->selected = row;
	qp = selected_qp(screen);
	screen->chosen_pid = qp ? qp->pid : 0;
	screen->chosen_qpn = qp ? qp->row.qpn : 0;
}

/* --- drawing --- */

static void draw_head(const struct screen *screen)
{
	const struct top_model *model = &screen->model;
	time_t now = time(NULL);
	struct tm local;
	char clock[16];

	localtime_r(&now, &local);
	strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	mvprintw(0, 0, "verbatim top  %s  processes: %u  QPs: %u  every %.1f s  order: %s", clock,
		 model->process_count, model->count, screen->options->interval_ms / 1e3,
		 top_order_name(screen->options->order));
	if (*screen->options->filter)
		printw("  filter: %s", screen->options->filter);
	move(1, 0);
	if (screen->is_typing)
		printw("filter: %s_", screen->typed);
	else if (!model->asked)
		addstr("no program of this user has a device open here");
	else if (model->answered < model->asked)
		printw("%u of %u adapters have not answered", model->asked - model->answered,
		       model->asked);
	else if (model->misunderstood)
		printw("%u adapters are of another version, or have no memory to measure",
		       model->misunderstood);
}

static void draw_table(struct screen *screen)
{
	uint32_t rows = LINES > FIRST_ROW + 1 ? (uint32_t)LINES - FIRST_ROW - 1 : 1;
	char line[TOP_LINE_MAX];

	if (screen->selected < screen->first)
		screen->first = screen->selected;
	if (screen->selected >= screen->first + rows)
		screen->first = screen->selected - rows + 1;
	top_format_heading(line);
	attron(A_BOLD);
	mvaddnstr(FIRST_ROW - 1, 0, line, COLS);
	attroff(A_BOLD);
	for (uint32_t i = 0; i < rows && screen->first + i < screen->shown_count; i++) {
		bool is_selected = screen->first + i == screen->selected;

		top_format_qp(&screen->model, &screen->model.qps[screen->shown[screen->first + i]],
			      line);
		if (is_selected)
			attron(A_REVERSE);
		mvaddnstr(FIRST_ROW + (int)i, 0, line, COLS);
		if (is_selected)
			attroff(A_REVERSE);
	}
}

static void draw_qp(const struct screen *screen)
{
	static char lines[TOP_DETAIL_LINES][TOP_LINE_MAX];
	const struct top_qp *qp = selected_qp(screen);
	uint32_t count;

	if (!qp || qp->pid != screen->chosen_pid || qp->row.qpn != screen->chosen_qpn) {
		mvaddstr(FIRST_ROW, 0, "this QP is gone");
		return;
	}
	count = top_format_detail(&screen->model, qp, lines);
	for (int i = 0; i < (int)count && FIRST_ROW + i < LINES - 1; i++)
		mvaddnstr(FIRST_ROW + i, 0, lines[i], COLS);
}

static void draw(struct screen *screen)
{
	erase();
	draw_head(screen);
	if (screen->is_open)
		draw_qp(screen);
	else
		draw_table(screen);
	mvaddnstr(LINES - 1, 0,
		  screen->is_open
			  ? "Escape: back  q: quit"
			  : "Enter: open a QP  t m r l p: sort  s: next order  /: filter  q: quit",
		  COLS);
	refresh();
}

/* --- keys --- */

static void set_order(struct screen *screen, enum top_order order)
{
	screen->options->order = order;
	choose_shown(screen);
}

/* Every line of the table that does not fit the filter vanishes as it is typed. */
static void on_typed(struct screen *screen, int key)
{
	size_t length = strlen(screen->typed);

	if (key == '\n' || key == KEY_ENTER || key == KEY_ESCAPE)
		screen->is_typing = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length)
		screen->typed[length - 1] = 0;
	else if (key >= ' ' && key < 127 && length + 1 < sizeof(screen->typed))
		screen->typed[length] = (char)key;
	if (key == KEY_ESCAPE)
		screen->typed[0] = 0;
	strcpy(screen->options->filter, screen->typed);
	choose_shown(screen);
}

static void move_selection(struct screen *screen, int32_t rows)
{
	int64_t row = (int64_t)screen->selected + rows;

	if (row >= screen->shown_count)
		row = (int64_t)screen->shown_count - 1;
	select_row(screen, row < 0 ? 0 : (uint32_t)row);
}

static void begin_typing(struct screen *screen)
{
	screen->is_typing = true;
	memset(screen->typed, 0, sizeof(screen->typed));
}

static void open_selected(struct screen *screen)
{
	if (!screen->shown_count)
		return;
	select_row(screen, screen->selected);
	screen->is_open = true;
}

static void on_table_key(struct screen *screen, int key)
{
	static const char letters[TOP_ORDER_COUNT + 1] = {
		[TOP_BY_THROUGHPUT] = 't', [TOP_BY_MESSAGES] = 'm', [TOP_BY_RETRANSMISSIONS] = 'r',
		[TOP_BY_LATENCY] = 'l',	   [TOP_BY_PROCESS] = 'p',
	};
	const char *letter = key > ' ' && key < 127 ? strchr(letters, key) : NULL;

	if (letter)
		set_order(screen, (enum top_order)(letter - letters));
	else if (key == 's')
		set_order(screen, (screen->options->order + 1) % TOP_ORDER_COUNT);
	else if (key == '/')
		begin_typing(screen);
	else if (key == KEY_UP || key == KEY_DOWN)
		move_selection(screen, key == KEY_UP ? -1 : 1);
	else if (key == KEY_PPAGE || key == KEY_NPAGE)
		move_selection(screen, (LINES - FIRST_ROW - 1) * (key == KEY_PPAGE ? -1 : 1));
	else if (key == '\n' || key == KEY_ENTER)
		open_selected(screen);
}

/* False: the user wants to end. */
static bool on_key(struct screen *screen, int key)
{
	if (screen->is_typing)
		on_typed(screen, key);
	else if (key == 'q')
		return false;
	else if (screen->is_open && (key == KEY_ESCAPE || key == KEY_LEFT || key == '\n'))
		screen->is_open = false;
	else if (!screen->is_open)
		on_table_key(screen, key);
	return true;
}

/* --- the loop --- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Takes keys until the next look is due. False: the user wants to end. */
static bool take_keys(struct screen *screen, int64_t until_ms)
{
	int64_t left_ms;

	while ((left_ms = until_ms - now_ms()) > 0) {
		int key;

		timeout((int)left_ms);
		key = getch();
		if (key != ERR && !on_key(screen, key))
			return false;
		if (key != ERR)
			draw(screen);
	}
	return true;
}

static int loop(struct screen *screen)
{
	int64_t next_ms = now_ms();

	do {
		if (!top_model_refresh(&screen->model, screen->options->pid))
			return 3;
		choose_shown(screen);
		draw(screen);
		next_ms += screen->options->interval_ms;
		if (next_ms < now_ms()) /* an adapter took its time to answer */
			next_ms = now_ms() + 1;
	} while (take_keys(screen, next_ms));
	return 0;
}

int top_screen_run(struct top_options *options)
{
	struct screen screen = { .options = options };
	int status;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
		fprintf(stderr, "verbatim top: this is no terminal; try --once\n");
		return 2;
	}
	setlocale(LC_ALL, "");
	if (!newterm(NULL, stdout, stdin)) {
		fprintf(stderr, "verbatim top: ncurses does not know this terminal; try --once\n");
		return 2;
	}
	cbreak();
	noecho();
	keypad(stdscr, true);
	set_escdelay(25);
	curs_set(0);
	status = loop(&screen);
	endwin();
	if (status)
		fprintf(stderr, "verbatim top: no socket to ask with\n");
	top_model_fini(&screen.model);
	return status;
}

#else

int top_screen_run(struct top_options *options)
{
	(void)options;
	fprintf(stderr, "verbatim top: this program was built without ncurses; --once works\n");
	return 2;
}

#endif
