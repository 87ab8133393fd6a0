/* A distance of 32 bits at offset 8 of .data. */
__asm__(".data\n.globl place\nplace:\n.quad 0\n.long away - .\n.text\n");
