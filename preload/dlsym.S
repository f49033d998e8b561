/* SPDX-License-Identifier: MIT */
/* dlsym, as the program sees it. What RTLD_NEXT and RTLD_DEFAULT mean depends on who calls, which
 * the C library reads from the return address: so the real function is reached by a jump, with
 * registers and stack as they came, and never by a call. Names that do not begin with "cu" go
 * there after two comparisons; the others are shown to cca_lookup_pick first. */
    .hidden cca_lookup_next
    .hidden cca_lookup_pick
    .hidden cca_lookup_start

#if defined(__x86_64__)

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

/* Calls a function with the arguments as they came, and the return address as the third, which not
 * all take; the arguments are as before afterwards. */
    .macro  call_with_arguments_kept function
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq    24(%rsp), %rdx
    call    \function
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    .endm

    .text
    .globl  dlsym
    .type   dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    _CET_ENDBR
    cmpb    $'c', (%rsi)
    jne     .Lreal
    cmpb    $'u', 1(%rsi)
    je      .Lpick
.Lreal:
    movq    cca_lookup_next(%rip), %rax
    testq   %rax, %rax
    je      .Lstart
    jmpq    *%rax

.Lpick:
    call_with_arguments_kept cca_lookup_pick
    testl   %edx, %edx
    je      .Lreal
    ret

.Lstart:
    call_with_arguments_kept cca_lookup_start
    jmpq    *%rax
    .cfi_endproc
    .size   dlsym, . - dlsym

#elif defined(__aarch64__)

/* The same; the two results are left in x16 and x17. */
    .macro  call_with_arguments_kept function
    stp     x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    stp     x0, x1, [sp, #16]
    mov     x29, sp
    mov     x2, x30
    bl      \function
    mov     x16, x0
    mov     x17, x1
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    .endm

    .text
    .globl  dlsym
    .type   dlsym, %function
    .p2align 4
dlsym:
    .cfi_startproc
    hint    #34                     /* bti c */
    ldrb    w16, [x1]
    cmp     w16, #'c'
    b.ne    .Lreal
    ldrb    w16, [x1, #1]
    cmp     w16, #'u'
    b.eq    .Lpick
.Lreal:
    adrp    x16, cca_lookup_next
    ldr     x16, [x16, #:lo12:cca_lookup_next]
    cbz     x16, .Lstart
    br      x16

.Lpick:
    call_with_arguments_kept cca_lookup_pick
    cbz     w17, .Lreal
    mov     x0, x16
    ret

.Lstart:
    call_with_arguments_kept cca_lookup_start
    br      x16
    .cfi_endproc
    .size   dlsym, . - dlsym

#else
#error "no dlsym for this processor"
#endif

    .section .note.GNU-stack, "", %progbits
