/*
 * Admission without plugins: everything is admitted at once.
 */
#include "local/admission.h"

#include "base/alloc.h"

struct td_admission {
    struct td_api *api; /* borrowed */
};

struct td_admission *td_admission_new(struct td_api *api)
{
    struct td_admission *admission = td_alloc(sizeof(*admission));
    *admission = (struct td_admission){.api = api};
    return admission;
}

void td_admission_free(struct td_admission *admission)
{
    td_free(admission);
}

bool td_admission_run(struct td_admission *admission, struct td_admission_request *request,
                      struct td_admission_verdict *ret, td_admission_done_fn done, void *context)
{
    (void)admission;
    (void)request;
    (void)done;
    (void)context;
    *ret = (struct td_admission_verdict){.status = 0};
    return true;
}

void td_admission_cancel(struct td_admission *admission, void *context)
{
    (void)admission;
    (void)context;
}
