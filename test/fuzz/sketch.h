/*
 * sketch.h
 *	  What the two fuzzers of the sketch's parsers share.
 */
#ifndef FUZZ_SKETCH_H
#define FUZZ_SKETCH_H

/* Both return whether the input was accepted, and abort on a broken promise. */
extern bool check_binary(const unsigned char *data, size_t size);
extern bool check_text(const char *text);

#endif							/* FUZZ_SKETCH_H */
