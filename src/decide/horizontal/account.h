/*
 * Why an HPA decided what it did, for users and for programs: what each metric wanted and from
 * which pods, what was done, what held it back and until when, and what would change it. Both
 * forms are written from one tree, which is made from the pass alone.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "decide/horizontal/owners.h"
#include "decide/horizontal/reconcile.h"

enum td_hpa_account_format { TD_HPA_ACCOUNT_TEXT, TD_HPA_ACCOUNT_JSON };

/* Calls below take NULL for the selection when the pods were not selected. */

/* The account as a tree in the arena of the pass. */
struct td_json *td_hpa_account_json(const struct td_hpa_pass *pass,
                                    const struct td_hpa_account_selection *selection);

/* Text ends with a newline; the owner of the buffer checks its appends. */
void td_hpa_account_write(const struct td_hpa_pass *pass,
                          const struct td_hpa_account_selection *selection,
                          enum td_hpa_account_format format, struct td_buf *out);
