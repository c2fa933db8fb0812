
/*
 * The text of kernels.ptx, as it stands, with a zero byte after it.  The path is
 * relative to where the compiler runs, the root of the source tree.
 */
__asm__(".pushsection .rodata\n"
        ".global cm_cuda_ptx\n"
        ".type cm_cuda_ptx, @object\n"
        "cm_cuda_ptx:\n"
        ".incbin \"lib/gpu/kernels.ptx\"\n"
        ".byte 0\n"
        ".size cm_cuda_ptx, . - cm_cuda_ptx\n"
        ".popsection\n");
