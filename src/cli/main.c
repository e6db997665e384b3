#include <stdio.h>

int main(void)
{
    (void)puts("tandem " TANDEM_VERSION); /* nothing to do about a closed stdout */
    return 0;
}
