/* gpuraid: the terminal of gpuraid watch.
 *
 * The screen is the terminal's second one, so that the first is as it was
 * afterwards.  The signal handlers only call what they may: write, tcsetattr,
 * sigaction, raise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/show/watch-term.h"
#include "common/bits.h"
#include "common/write-all.h"

/* Second screen, no cursor, no wrapping; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static struct termios saved;
static bool is_saved;           /* stdin is a terminal too */
static bool keys;               /* and gives keys */
static volatile sig_atomic_t is_open, resized;

static void
enter (void)
{
  struct termios t = saved;

  t.c_lflag &= ~(ICANON | ECHO);
  t.c_cc[VMIN] = 1;
  t.c_cc[VTIME] = 0;
  if (is_saved)
    tcsetattr (STDIN_FILENO, TCSANOW, &t);
  write_all (STDOUT_FILENO, ENTER, strlen (ENTER));
}

static void
leave (void)
{
  write_all (STDOUT_FILENO, LEAVE, strlen (LEAVE));
  if (is_saved)
    tcsetattr (STDIN_FILENO, TCSANOW, &saved);
}

static void
on_resize (int sig)
{
  resized = 1;
}

/* It is delivered a second time, with its usual effect, from here. */
static void
on_signal (int sig)
{
  const struct sigaction again = {
    .sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_NODEFER,
  };
  const int err = errno;

  if (is_open)
    leave ();
  raise (sig);
  /* Only SIGTSTP comes back, once the program is continued. */
  sigaction (sig, &again, NULL);
  if (is_open)
    enter ();
  resized = 1;
  errno = err;
}

void
term_open (void)
{
  static const int signals[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGABRT, SIGTSTP,
  };
  const struct sigaction end = {
    .sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_NODEFER,
  };
  const struct sigaction resize = { .sa_handler = on_resize };

  keys = is_saved = tcgetattr (STDIN_FILENO, &saved) == 0;
  atexit (term_close);
  for (size_t i = 0; i < ARRAY_LEN (signals); i++)
    sigaction (signals[i], &end, NULL);
  sigaction (SIGWINCH, &resize, NULL);
  is_open = 1;
  enter ();
}

void
term_close (void)
{
  if (!is_open)
    return;
  is_open = 0;
  leave ();
}

void
term_screen (struct watch_screen *screen)
{
  const char *no_color = getenv ("NO_COLOR"), *term = getenv ("TERM");
  struct winsize w;

  *screen = (struct watch_screen) {
    .columns = 80, .rows = 24,
    .colour = (no_color == NULL || no_color[0] == '\0') && term &&
      strcmp (term, "dumb") != 0,
  };
  if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col && w.ws_row) {
    screen->columns = w.ws_col;
    screen->rows = w.ws_row;
  }
}

/* Each line replaces what was there, and there is no newline after the last:
 * nothing scrolls or flickers.
 */
int
term_draw (const char *text)
{
  const size_t max = 8 * strlen (text) + 16;
  char *out = malloc (max), *p = out;
  int r;

  if (out == NULL)
    return -1;
  p = stpcpy (p, "\033[H");
  for (; *text; text++)
    if (*text == '\n')
      p = stpcpy (p, "\033[K\n");
    else
      *p++ = *text;
  p = stpcpy (p, "\033[K\033[J");
  r = write_all (STDOUT_FILENO, out, p - out);
  free (out);
  return r;
}

enum term_event
term_wait (double seconds)
{
  struct pollfd p = { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN };
  char key;
  int r;

  if (resized) {
    resized = 0;
    return TERM_RESIZED;
  }
  r = poll (&p, 1, MAX (0, (int) (seconds * 1000)));
  if (resized) {
    resized = 0;
    return TERM_RESIZED;
  }
  if (r <= 0)
    return TERM_TIME;
  r = read (STDIN_FILENO, &key, 1);
  if (r == 0 || (r == -1 && errno != EINTR && errno != EAGAIN))
    keys = false;               /* no more keys */
  return r == 1 && (key == 'q' || key == 'Q') ? TERM_QUIT : TERM_RESIZED;
}
