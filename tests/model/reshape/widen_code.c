/* gpuraid: the model of widening: code words of old and new rows.
 *
 * All rows are words of k + 1 data and m parity cells.  Roles 0 to k are data,
 * k + 1 to k + m parity; in an old row role k is the new member, the last slot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "widen.h"

int K, M, N, S, NC, FEND;

static u8 ex[512], lg[256], C[4][8];

static u8
mul (u8 a, u8 b)
{
  return a && b ? ex[lg[a] + lg[b]] : 0;
}

static u8
inv (u8 a)
{
  return ex[255 - lg[a]];
}

void
field (void)
{
  int x = 1;
  for (int i = 0; i < 255; i++) {
    ex[i] = ex[i + 255] = x;
    lg[x] = i;
    x <<= 1;
    if (x & 256)
      x ^= 0x11d;
  }
  for (int i = 0; i < 8; i++) {
    C[0][i] = 1;
    C[1][i] = ex[i];
    for (int t = 1; t < 3; t++)
      C[t + 1][i] = inv (inv (ex[i]) ^ ex[t]);
  }
  for (int j = 2; j < 4; j++) {
    u8 d = inv (C[j][0]);
    for (int i = 0; i < 8; i++)
      C[j][i] = mul (C[j][i], d);
  }
}

/* Of a row as it was laid out before. */
int
role_before (int s, int slot)
{
  int r;
  if (slot == K + M)
    return K;
  r = ((slot - (M - 1) + s) % (K + M) + K + M) % (K + M);
  return r < K ? r : r + 1;
}

static int
role_new (int s, int slot)
{
  return ((slot - (M - 1) + s) % N + N) % N;
}

int
role (int nw, int s, int slot)
{
  return nw || ON (norotate) ? role_new (s, slot) : role_before (s, slot);
}

/* What role r has, of K + 1 data cells. */
u8
cell (int r, const u8 *d)
{
  u8 v = 0;
  if (r <= K)
    return d[r];
  for (int i = 0; i <= K; i++)
    v ^= mul (C[r - K - 1][i], d[i]);
  return v;
}

/* Data from any K+1 of the good cells (by slot); 0: too few; -1: those that are
 * left do not fit. */
int
decode (int nw, int s, unsigned good, const u8 *v, u8 *d)
{
  u8 A[5][6];
  int c = 0, k1 = K + 1;
  for (int p = 0; p < N && c < k1; p++)
    if (good >> p & 1) {
      int r = role (nw, s, p);
      for (int i = 0; i < k1; i++)
        A[c][i] = r <= K ? i == r : C[r - K - 1][i];
      A[c++][k1] = v[p];
    }
  if (c < k1)
    return 0;
  for (int i = 0; i < k1; i++) {
    int q = i;
    while (q < k1 && !A[q][i])
      q++;
    if (q == k1) {
      fprintf (stderr, "singular\n");
      exit (2);
    }
    if (q != i)
      for (int j = 0; j <= k1; j++) {
        u8 t = A[q][j];
        A[q][j] = A[i][j];
        A[i][j] = t;
      }
    u8 iv = inv (A[i][i]);
    for (int j = 0; j <= k1; j++)
      A[i][j] = mul (A[i][j], iv);
    for (int r = 0; r < k1; r++)
      if (r != i && A[r][i]) {
        u8 f = A[r][i];
        for (int j = 0; j <= k1; j++)
          A[r][j] ^= mul (f, A[i][j]);
      }
  }
  for (int i = 0; i < k1; i++)
    d[i] = A[i][k1];
  for (int p = 0; p < N; p++)
    if ((good >> p & 1) && cell (role (nw, s, p), d) != v[p])
      return -1;
  return 1;
}

int
dead_end (int F)
{
  int d = F + F / K;
  return F >= FEND || d > S ? S : d;
}

int
full (void)
{
  return (1 << N) - 1;
}

int
pop (unsigned x)
{
  return __builtin_popcount (x);
}

int
is_new (const St *s, int row)
{
  return s->phase == 2 || (s->phase == 1 && row < s->F);
}

unsigned
must (const St *s)
{
  return s->phase == 0 ? full () & ~(1u << (K + M)) : (unsigned) full ();
}
