/* gpuraid: nbdkit 1.32.4 to 1.33.11 lives on when a client is killed.
 *
 * Two of the program's calls come here.  A failed assertion that the socket is
 * open, in the function that sends, becomes an error of that function: nbdkit
 * then treats the reply as one that could not be sent.  Saying goodbye in TLS
 * becomes the end of the socket's sending side, which is safe while another
 * thread sends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/log.h"
#include "old-nbdkit/frames.h"
#include "old-nbdkit/killed-client.h"
#include "old-nbdkit/program.h"

/* gnutls.h: gnutls_close_request_t */
#define GNUTLS_SHUT_WR 1

typedef int (*bye_function) (void *session, int how);
typedef int (*get_socket_function) (void *session);

static bye_function real_bye;
static get_socket_function get_socket;

bool
killed_client_ends (const char *version)
{
  unsigned minor, patch;
  int len = -1;

  if (sscanf (version, "1.%2u.%3u%n", &minor, &patch, &len) != 2 ||
      len < 0 || version[len] != '\0')
    return false;
  return (minor == 32 && patch >= 4) || (minor == 33 && patch <= 11);
}

static _Noreturn void
assertion_failed (const char *assertion, const char *file, unsigned line,
                  const char *function)
{
  if (strcmp (assertion, "sock >= 0") == 0 &&
      strncmp (function, "raw_send_", strlen ("raw_send_")) == 0) {
    errno = EPIPE;
    frames_return_error (__builtin_return_address (0));
  }
  __assert_fail (assertion, file, line, function);
}

static int
end_session (void *session, int how)
{
  if (how != GNUTLS_SHUT_WR)
    return real_bye (session, how);
  shutdown (get_socket (session), SHUT_WR);
  return 0;
}

/* An nbdkit that was built without GnuTLS has neither. */
static int
replace_bye (void)
{
  real_bye = (bye_function) dlsym (RTLD_DEFAULT, "gnutls_bye");
  get_socket =
    (get_socket_function) dlsym (RTLD_DEFAULT, "gnutls_transport_get_int");
  if (real_bye == NULL)
    return 0;
  if (get_socket == NULL)
    return -1;
  return program_replace_calls ("gnutls_bye", (void (*) (void)) end_session);
}

static int
replace_assertion (void)
{
  if (!frames_known ())
    return -1;
  return program_replace_calls ("__assert_fail",
                                (void (*) (void)) assertion_failed);
}

void
killed_client_survive (void)
{
  const char *version = program_version (killed_client_ends);

  if (version == NULL)
    return;
  if (replace_assertion () == -1 || replace_bye () == -1)
    log_notice ("nbdkit %s ends when a client is killed or its connection "
                "breaks under load; install nbdkit 1.34 or later", version);
}
