/*
 * Chooses table or lines by the output, redraws on a timer and on keys, and holds log lines back
 * while the table is shown.
 */
#include "cli/up/up_live.h"

#include <event2/event.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/os/screen_text.h"
#include "cli/up/screen.h"
#include "cli/up/up_terminal.h"

#define LIVE_FRAME_MS 500  /* of the machine's time, whatever the cluster's clock does */
#define LIVE_OTHER_LINES 2 /* an empty one above the table, the cursor's below */

struct td_live {
    bool has_table;
    struct td_screen screen;
    FILE *kept_log;       /* NULL: log lines go where they belong at once */
    struct td_loop *loop; /* borrowed, as the two below; NULL before the begin */
    struct td_world *world;
    td_str greeting;
    struct td_terminal *terminal;
    struct event *tick;
    struct td_arena arena;      /* one look at the world */
    struct td_buf frame;        /* one table */
    struct td_buf line;         /* one event */
    struct td_buf early_events; /* from before the begin */
};

struct td_live *td_live_new(td_env_fn env, void *env_context)
{
    struct td_live *live = td_alloc_zero(1, sizeof(*live));
    const char *no_colour = env("NO_COLOR", env_context);
    live->has_table = td_terminal_is_there(env("TERM", env_context));
    live->screen.has_colour = live->has_table && !(no_colour && no_colour[0] != '\0');
    live->screen.has_utf8 = td_screen_has_utf8(env, env_context);
    live->kept_log = live->has_table && isatty(STDERR_FILENO) ? tmpfile() : NULL;
    td_arena_init(&live->arena, TD_SCREEN_VIEW_BYTES_MAX);
    td_buf_init(&live->frame, TD_SCREEN_BYTES_MAX);
    td_buf_init(&live->line, TD_SCREEN_BYTES_MAX);
    td_buf_init(&live->early_events, TD_SCREEN_BYTES_MAX);
    return live;
}

bool td_live_has_keys(const struct td_live *live)
{
    return live->has_table && isatty(STDIN_FILENO);
}

FILE *td_live_log_stream(struct td_live *live)
{
    return live->kept_log ? live->kept_log : stderr;
}

/* Only the newest lines are worth keeping. */
static void live_limit_log(struct td_live *live)
{
    if (live->kept_log && ftello(live->kept_log) > (off_t)TD_LOG_KEPT_BYTES_MAX) {
        rewind(live->kept_log);
        if (ftruncate(fileno(live->kept_log), 0) != 0) {
            return; /* old lines show between new ones */
        }
    }
}

static void live_print_log(FILE *log)
{
    char piece[4096];
    rewind(log);
    for (size_t len; (len = fread(piece, 1, sizeof(piece), log)) > 0;) {
        (void)fwrite(piece, 1, len, stderr); /* nowhere else to report that stderr is closed */
    }
}

void td_live_free(struct td_live *live)
{
    if (!live) {
        return;
    }
    td_live_end(live);
    if (live->kept_log) {
        live_print_log(live->kept_log);
        (void)fclose(live->kept_log); /* a file without a name */
    }
    td_arena_done(&live->arena);
    td_buf_done(&live->frame);
    td_buf_done(&live->line);
    td_buf_done(&live->early_events);
    td_free(live);
}

/* ---- Lines ---- */

/* A reader of a pipe waits for each line. */
static void live_print(struct td_live *live, td_str text)
{
    if (fwrite(text.ptr, 1, text.len, stdout) != text.len || fflush(stdout) != 0) {
        td_loop_stop(live->loop); /* the output is closed; reported when the program ends */
    }
}

void td_live_happened(const struct td_world_event *event, void *context)
{
    struct td_live *live = context;
    if (live->has_table) {
        return;
    }
    td_buf_reset(&live->line);
    td_screen_event(event, false, &live->line);
    if (live->loop) {
        live_print(live, td_buf_str(&live->line));
    } else {
        (void)td_buf_append(&live->early_events, td_buf_str(&live->line)); /* the first ones do */
    }
}

/* ---- The table ---- */

static void live_draw(struct td_live *live)
{
    size_t lines;
    struct td_world_view view;
    td_terminal_size(&live->screen.width, &lines);
    live->screen.height = lines > LIVE_OTHER_LINES ? lines - LIVE_OTHER_LINES : 0;
    td_arena_reset(&live->arena);
    td_buf_reset(&live->frame);
    td_world_look(live->world, &live->arena, &view);
    (void)td_buf_append_char(&live->frame, '\n'); /* all of it checked once */
    td_screen_table(&live->screen, &view, &live->frame);
    if (!live->frame.is_full) {
        td_terminal_draw(live->terminal, td_buf_str(&live->frame));
    }
}

static void live_on_tick(evutil_socket_t fd, short what, void *context)
{
    struct td_live *live = context;
    (void)fd;
    (void)what;
    live_limit_log(live);
    live_draw(live);
}

static void live_on_key(char key, void *context)
{
    struct td_live *live = context;
    if (key == 'q' || key == 'Q') {
        td_loop_stop(live->loop);
    } else if (key == '?') {
        live->screen.shows_help = !live->screen.shows_help;
        live_draw(live);
    }
}

static void live_on_cleared(void *context)
{
    struct td_live *live = context;
    live_print(live, live->greeting);
    live_draw(live);
}

static int live_begin_table(struct td_live *live, struct td_error *err)
{
    const struct td_terminal_options options = {.base = td_loop_base(live->loop),
                                                .key = live_on_key,
                                                .cleared = live_on_cleared,
                                                .context = live};
    static const struct timeval every = {.tv_usec = LIVE_FRAME_MS * 1000};
    int code = td_terminal_new(&options, &live->terminal, err);
    if (code != TD_OK) {
        return code;
    }
    live->tick = event_new(options.base, -1, EV_PERSIST, live_on_tick, live);
    if (!live->tick || event_add(live->tick, &every) != 0) {
        return td_error_set(err, TD_IO, "cannot set a timer for the table");
    }
    live_draw(live);
    return TD_OK;
}

int td_live_begin(struct td_live *live, struct td_loop *loop, struct td_world *world,
                  td_str greeting, struct td_error *err)
{
    live->loop = loop;
    live->world = world;
    live->greeting = greeting;
    live_print(live, greeting);
    live_print(live, td_buf_str(&live->early_events));
    return live->has_table ? live_begin_table(live, err) : TD_OK;
}

void td_live_end(struct td_live *live)
{
    if (live->tick) {
        event_free(live->tick);
    }
    td_terminal_free(live->terminal);
    live->tick = NULL;
    live->terminal = NULL;
}
