#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device_impl.h"

void cm_pci_read_line(const char *path, char *buf, size_t size)
{
    buf[0] = '\0';
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    const ssize_t n = read(fd, buf, size - 1);
    buf[n > 0 ? n : 0] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    close(fd);
}

/*
 * "32.0 GT/s PCIe": the rate of a lane doubles with each generation, nearly from the first
 * (2.5).
 */
static unsigned generation_of(const char *speed)
{
    static const unsigned long rates[] = {2, 5, 8, 16, 32, 64};
    const unsigned long rate = strtoul(speed, NULL, 10);
    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++)
        if (rate == rates[i])
            return i + 1;
    return 0;
}

cm_device_link cm_pci_link(const char *sysfs, const char *pci)
{
    char text[4][64];
    static const char *const names[] = {"current_link_speed", "current_link_width",
                                        "max_link_speed", "max_link_width"};
    for (size_t i = 0; i < 4; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/bus/pci/devices/%s/%s", sysfs, pci, names[i]);
        cm_pci_read_line(path, text[i], sizeof text[i]);
    }
    return (cm_device_link){
        .generation = generation_of(text[0]),
        .width = (unsigned)strtoul(text[1], NULL, 10),
        .max_generation = generation_of(text[2]),
        .max_width = (unsigned)strtoul(text[3], NULL, 10),
    };
}
