/*
 * json_number.c
 *	  Numbers in JSON documents as float8.
 *
 * jsonb keeps numbers as numeric, and core goes from there to float8 through
 * text.  Here the digits become an integer and the decimal point a power of
 * ten.  Where a double holds both exactly, one multiplication or division
 * rounds correctly; where 64 bits hold the digits, which is where the shortest
 * text of any double of ordinary size falls, 128-bit integers do.  The few
 * numbers beyond go through text as well.
 */
#include "postgres.h"

#include <errno.h>
#include <math.h>

#include "common/int.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "compat.h"
#include "percentile/json_number.h"

/* Every integer up to this is a double. */
#define MAX_EXACT_DIGITS (UINT64CONST(1) << 53)

/* The powers of ten that are doubles. */
static const double powers_of_10[] = {
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22
};

#define MAX_EXACT_POWER ((int) lengthof(powers_of_10) - 1)

#ifdef HAVE_INT128

/* The powers of 5 that 64 bits hold. */
static const uint64 powers_of_5[] = {
	UINT64CONST(1), UINT64CONST(5), UINT64CONST(25),
	UINT64CONST(125), UINT64CONST(625), UINT64CONST(3125),
	UINT64CONST(15625), UINT64CONST(78125), UINT64CONST(390625),
	UINT64CONST(1953125), UINT64CONST(9765625), UINT64CONST(48828125),
	UINT64CONST(244140625), UINT64CONST(1220703125), UINT64CONST(6103515625),
	UINT64CONST(30517578125), UINT64CONST(152587890625), UINT64CONST(762939453125),
	UINT64CONST(3814697265625), UINT64CONST(19073486328125), UINT64CONST(95367431640625),
	UINT64CONST(476837158203125), UINT64CONST(2384185791015625), UINT64CONST(11920928955078125),
	UINT64CONST(59604644775390625), UINT64CONST(298023223876953125), UINT64CONST(1490116119384765625),
	UINT64CONST(7450580596923828125)
};

#define MAX_POWER_OF_5 ((int) lengthof(powers_of_5) - 1)

static double
power_of_2(int power)
{
	union
	{
		uint64		bits;
		double		value;
	}			image;

	Assert(power > -1023 && power < 1024);
	image.bits = (uint64) (power + 1023) << 52;
	return image.value;
}

/*
 * digits * 10^power, correctly rounded, where digits is not 0 and power is
 * within ±MAX_POWER_OF_5.  The 64 leading bits of the result are computed with
 * the last one telling whether anything follows; the conversion to double
 * rounds them, and the power of 2 is put back.
 */
static double
scale_in_128_bits(uint64 digits, int power)
{
	uint64		factor = powers_of_5[abs(power)];
	int			shift = 63 - pg_leftmost_one_pos64(digits);
	uint128		wide;
	uint64		leading;

	digits <<= shift;
	if (power >= 0)
	{
		wide = (uint128) digits * factor;
		if ((uint64) (wide >> 64) == 0)
			return (double) (uint64) wide * power_of_2(power - shift);

		/* Bring the topmost bit to the top. */
		int			above = 63 - pg_leftmost_one_pos64((uint64) (wide >> 64));

		wide <<= above;
		leading = (uint64) (wide >> 64) | ((uint64) wide != 0);
		return (double) leading * power_of_2(power - shift - above + 64);
	}
	else
	{
		int			factor_shift = 63 - pg_leftmost_one_pos64(factor);

		factor <<= factor_shift;
		wide = (uint128) digits << 63;
		leading = (uint64) (wide / factor);
		leading |= (wide - (uint128) leading * factor != 0);
		return (double) leading * power_of_2(power - shift + factor_shift - 63);
	}
}
#endif							/* HAVE_INT128 */

/*
 * The digits of a finite numeric as one integer, and the power of ten to
 * multiply it by; false if 64 bits do not hold them.
 */
static bool
gather_digits(const NumericParts *parts, uint64 *digits, int *power)
{
	uint64		gathered = 0;
	uint64		scale = METRICS_NUMERIC_BASE;
	uint64		last;
	int			count = parts->ndigits;

	/* Computing leaves no zeros at the ends; what came as binary may. */
	while (count > 0 && parts->digits[count - 1] == 0)
		count--;
	*power = (parts->weight - count + 1) * METRICS_NUMERIC_BASE_DIGITS;
	*digits = 0;
	if (count == 0)
		return true;
	if (count > 5)
		return false;

	for (int i = 0; i < count - 1; i++)
		gathered = gathered * METRICS_NUMERIC_BASE + parts->digits[i];
	last = parts->digits[count - 1];

	/* Without its last zeros a number may be one that is exact. */
	if (count > 3 || *power < -MAX_EXACT_POWER)
	{
		while (last % 10 == 0)
		{
			last /= 10;
			scale /= 10;
			(*power)++;
		}
	}
	return !pg_mul_u64_overflow(gathered, scale, digits) &&
		!pg_add_u64_overflow(*digits, last, digits);
}

/* Through text; false if it is out of float8's range. */
static bool
convert_as_text(Numeric numeric, double *result)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out,
														   NumericGetDatum(numeric)));

	errno = 0;
	*result = strtod(text, NULL);
	pfree(text);

	/* A subnormal result may set errno, too. */
	return errno != ERANGE || (*result != 0 && !isinf(*result));
}

/*
 * A numeric as float8, rounded as core's cast does; false for those which that
 * refuses as out of range: beyond ±1.8e308, or nearer to 0 than 2.5e-324 but
 * not 0.
 */
bool
numeric_to_float8(Numeric numeric, double *result)
{
	NumericParts parts;
	uint64		digits;
	int			power;

	if (unlikely(VARATT_IS_EXTENDED(numeric)))
		numeric = DatumGetNumericCopy(NumericGetDatum(numeric));

	metrics_numeric_parts(numeric, &parts);
	if (unlikely(parts.kind != NUMERIC_KIND_FINITE))
	{
		*result = parts.kind == NUMERIC_KIND_NAN ? get_float8_nan() :
			parts.negative ? -get_float8_infinity() : get_float8_infinity();
		return true;
	}

	if (!gather_digits(&parts, &digits, &power))
		return convert_as_text(numeric, result);
	if (digits <= MAX_EXACT_DIGITS && power >= -MAX_EXACT_POWER && power <= MAX_EXACT_POWER)
		*result = power < 0 ? (double) digits / powers_of_10[-power] :
			(double) digits * powers_of_10[power];
	else if (digits == 0)
		*result = 0;
#ifdef HAVE_INT128
	else if (power >= -MAX_POWER_OF_5 && power <= MAX_POWER_OF_5)
		*result = scale_in_128_bits(digits, power);
#endif
	else
		return convert_as_text(numeric, result);

	/* numeric has no -0, and neither have we. */
	if (parts.negative)
		*result = -*result;
	return true;
}

/* Is a string one of those that stand for what JSON has no numbers for? */
bool
json_special_number(const char *text, int len, double *result)
{
	if (len == 3 && memcmp(text, "NaN", 3) == 0)
		*result = get_float8_nan();
	else if (len == 8 && memcmp(text, "Infinity", 8) == 0)
		*result = get_float8_infinity();
	else if (len == 9 && memcmp(text, "-Infinity", 9) == 0)
		*result = -get_float8_infinity();
	else
		return false;
	return true;
}

/*
 * The number that a value of a document is: one of JSON's that float8 can hold,
 * or a special one spelled as a string.  False for anything else.
 */
bool
json_number(const JsonbValue *value, double *result)
{
	if (value->type == jbvNumeric)
		return numeric_to_float8(value->val.numeric, result);
	if (value->type == jbvString)
		return json_special_number(value->val.string.val, value->val.string.len, result);
	return false;
}
