/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest of one sector for tests/clients/migration.sh. It fills 64 MB, from 16 MB on, with numbers;
 * then, if BUSY is 1, it adds one to the first number of each page of the first 16 MB of them, for
 * ever. The count of the rounds is at 0x8000; it is 1 when the guest is ready.
 */
	.code16
	.globl _start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	inb	$0x92, %al		/* A20 */
	orb	$2, %al
	outb	%al, $0x92
	lgdtl	table_address
	movl	%cr0, %eax
	orl	$1, %eax
	movl	%eax, %cr0
	ljmpl	$8, $protected

	.code32
protected:
	movw	$16, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movl	$0, 0x8000
	movl	$0x1000000, %edi
	movl	$0x1000000, %ecx	/* words of four bytes */
	movl	$0x12345678, %eax
fill:
	movl	%eax, (%edi)
	addl	$0x9e3779b1, %eax
	addl	$4, %edi
	decl	%ecx
	jnz	fill
	movl	$1, 0x8000
again:
	movl	$BUSY, %eax
	testl	%eax, %eax
	jz	rest
	movl	$0x1000000, %edi
	movl	$0x1000, %ecx
change:
	incl	(%edi)
	addl	$0x1000, %edi
	decl	%ecx
	jnz	change
	incl	0x8000
	jmp	again
rest:
	hlt
	jmp	rest

	.balign	8
table:
	.quad	0
	.quad	0x00cf9a000000ffff	/* code */
	.quad	0x00cf92000000ffff	/* data */
table_address:
	.word	23
	.long	table

	.org	510
	.word	0xaa55
