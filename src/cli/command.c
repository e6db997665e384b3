#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>

int td_command_fail(const char *format, ...)
{
    va_list args;
    (void)fputs("tandem: ", stderr); /* nowhere else to report that stderr is closed */
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    return TD_EXIT_FAILED;
}
